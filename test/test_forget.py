"""h5cow forget, squash, gc: versions go, all others stay as they are, and what only those had becomes free.

Which ones a policy keeps is compared with a model of restic's rules that is written from their description alone.
"""

import calendar
import datetime
import json
import os
import pwd
import random
import re
import shutil
import subprocess
import time

import h5py
import numpy as np
import pytest
from conftest import H5COW, STOCK, again, h5cow, seed

STORY = """
with h5py.File(sys.argv[1], 'a') as f:
    n = int(sys.argv[2])
    if n == 1:
        f.create_dataset('x', (40000,), 'f8', chunks=(1000,))
        f['small'] = [1, 2, 3]
    f['x'][: 1000 * n] = np.random.default_rng(n).random(1000 * n)
    f['small'][0] = n
    if n == 3:
        f['away'] = np.random.default_rng(3).random(5000)
    if n == 4:
        del f['away']
"""
VERSIONS = 6


@pytest.fixture(scope="module")
def made(programs, tmp_path_factory):
    path = tmp_path_factory.mktemp("forget") / "a.h5"
    for n in range(1, VERSIONS + 1):
        done = programs.python(STORY, path, n)
        assert done.returncode == 0, done.stderr
    return path


@pytest.fixture
def story(made, tmp_path):
    return shutil.copy(made, tmp_path / "a.h5")


def log(path, *options):
    return json.loads(h5cow("log", "--json", *options, path))[::-1]


def names(path):
    return [row["name"] for row in log(path)]


def forget(path, *words, verb="forget"):
    return json.loads(h5cow(verb, "--json", path, *words))


def hashes(path):
    return {row["number"]: json.loads(h5cow("hash", "--json", f"{path}@#{row['number']}"))["hash"] for row in log(path)}


def allocated(path):
    return os.stat(path).st_blocks * 512


def test_named_versions_go_and_all_others_stay(programs, story):
    before = hashes(story)
    told = forget(story, "2", "#4", "2")
    assert [(v["name"], v["forget"], v["reasons"]) for v in told["versions"]] == [("2", True, []), ("4", True, [])]
    assert told["forgotten"] == 2 and told["frees"] == (2 + 4) * 8000 and told["collected"] is told["trouble"] is None
    assert names(story) == ["1", "3", "5", "6"] and hashes(story) == {n: before[n] for n in (1, 3, 5, 6)}
    programs.verified(story)
    done = programs.stock("h5ls", f"{story}/_versioned_data/versions")
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["1", "3", "5", "6"]
    done = programs.python("with h5py.File(sys.argv[1] + '@3') as f: print(len(f['away']), f['small'][0])", story)
    assert done.stdout == "5000 3\n", done.stderr
    assert "'2'" in h5cow("ls", f"{story}@2", code=2) and "#4" in h5cow("show", f"{story}@#4", code=2)
    assert programs.python(STORY, story, 7).returncode == 0
    assert [row["number"] for row in log(story)] == [1, 3, 5, 6, 7]
    programs.verified(story)


def test_a_dry_run_tells_the_same_and_changes_nothing(story):
    content = story.read_bytes()
    told = forget(story, "--keep-last=2", "-n")
    assert told["dry_run"] and told["forgotten"] == 4 and story.read_bytes() == content
    assert json.loads(h5cow("squash", "-n", "--json", story, "1..3"))["forgotten"] == 2
    assert json.loads(h5cow("gc", "-n", "--json", story))["chunks"] == 0 and story.read_bytes() == content
    real = forget(story, "--keep-last=2")
    assert {**real, "dry_run": True} == told and names(story) == ["5", "6"]


def test_what_is_told_to_be_freed_is_freed(programs, story):
    told = forget(story, "1..3", "5", "--gc")
    assert told["frees"] == told["collected"]["bytes"] == sum(8000 * n for n in (1, 2, 3, 5)) + 40000
    assert told["collected"]["chunks"] == 11 + 1
    assert json.loads(h5cow("gc", "-n", "--json", story))["bytes"] == 0
    assert h5cow("gc", story).endswith("nothing to make free\n")
    programs.verified(story)


def without_added(path):
    """What the log tells, but by how much the file grew: the new one has grown otherwise; and of what is forgotten, with what."""
    left_out = {"added": None}, {"added": None, "host": "", "program": "", "hdf5": "", "h5cow": ""}
    return [{**row, **left_out[row["forgotten"]]} for row in log(path, "--all")]


def test_compacting_keeps_all_that_was_not_forgotten(programs, story):
    h5cow("tag", f"{story}@3", "paper")
    forget(story, "--keep-last=2")
    wanted, rows, size = hashes(story), without_added(story), story.stat().st_size
    h5cow("gc", "--compact", "-n", story)
    assert story.stat().st_size == size
    told = json.loads(h5cow("gc", "--compact", "--json", story))
    assert (told["versions"], told["forgotten"]) == (3, 3) and told["bytes_after"] == story.stat().st_size < size
    assert hashes(story) == wanted and without_added(story) == rows
    h5cow("forget", story, "5", "--gc")
    assert programs.python(STORY, story, 7).returncode == 0
    assert {n: h for n, h in hashes(story).items() if n < 7} == {n: wanted[n] for n in (3, 6)}
    programs.verified(story)


def test_gc_frees_what_was_forgotten_before(programs, story):
    told, taken = forget(story, "--keep-last=1"), allocated(story)
    foreseen = json.loads(h5cow("gc", "--dry-run", "--json", story))
    assert (foreseen["bytes"], foreseen["holes"]) == (told["frees"], None)
    done = json.loads(h5cow("gc", "--json", story))
    assert done["bytes"] == told["frees"] and done["chunks"] == foreseen["chunks"]
    assert done["holes"] == 0 or allocated(story) < taken
    assert json.loads(h5cow("stat", "--json", story))["totals"]["chunk_bytes"] == 8000 * VERSIONS
    programs.verified(story)


def test_new_chunks_take_the_places_of_those_that_went(programs, story):
    sizes = []
    for n in range(20, 32):
        done = programs.python(STORY.replace("default_rng(n)", f"default_rng({n})").replace("int(sys.argv[2])", "6"), story)
        assert done.returncode == 0, done.stderr
        forget(story, "--keep-last=2", "--gc")
        sizes.append(story.stat().st_size)
    assert sizes[-1] - sizes[3] < 8 * 48000 / 2, sizes
    programs.verified(story)


def test_squashing_leaves_one_version_with_all_changes(programs, story):
    before, differs = hashes(story), h5cow("diff", f"{story}@2", f"{story}@5", code=1)
    h5cow("squash", story, "3..5")
    assert names(story) == ["1", "2", "5", "6"] and {**before, **hashes(story)} == before
    assert differs in h5cow("show", f"{story}@5") and log(story)[2]["parent"] == "2"
    assert {part["version"]["name"] for part in json.loads(h5cow("blame", "--json", f"{story}@5", "/x"))} == {"5"}
    assert [op["what"] for op in json.loads(h5cow("log", "--operations", "--json", story))] == ["2 versions squashed"]
    programs.verified(story)


def test_tagged_versions_and_the_newest_stay(story):
    h5cow("tag", f"{story}@2", "paper")
    content = story.read_bytes()
    said = h5cow("forget", story, "1..3", code=2)
    assert "'paper'" in said and "'2'" in said and "nothing was changed" in said
    assert "'paper'" in h5cow("squash", story, "1..4", code=2)
    assert "newest" in h5cow("forget", story, "~0", code=2) and "newest" in h5cow("forget", story, "3..latest", code=2)
    assert story.read_bytes() == content
    told = forget(story, "--keep=4", "--keep-tag=paper")
    assert [(v["name"], v["reasons"]) for v in told["versions"] if not v["forget"]] == [
        ("2", ["tag paper"]), ("4", ["named"]), ("6", ["newest"])]
    h5cow("tag", "-d", story, "paper")
    h5cow("forget", story, "paper", code=2)
    h5cow("forget", story, "2")
    assert names(story) == ["4", "6"]


def test_what_is_not_right_is_refused(story, tmp_path):
    content = story.read_bytes()
    for words, said in [(["forget", story], "which versions?"), (["forget"], "which file?"),
                        (["forget", story, "9"], "there is no version '9'"), (["forget", story, "1..9"], "'9'"),
                        (["forget", story, "3..1"], "older"), (["forget", story, ".."], "not a revision"),
                        (["forget", f"{story}@1"], "h5cow forget"), (["forget", story, "1", "--keep-last=1"], "not both"),
                        (["forget", story, "--keep-last=0"], "from 1"), (["forget", story, "--keep-last=x"], "--keep-last"),
                        (["forget", story, "--keep-daily=99999999999999999999"], "from 1"),
                        (["forget", story, "--keep-last=1", "--keep-last=2"], "twice"),
                        (["forget", story, "--keep-within=5"], "no duration"), (["forget", story, "--keep-tag=none"], "no tag 'none'"),
                        (["forget", story, "--keep=none"], "'none'"), (["forget", story, "--keep-last"], "missing"),
                        (["forget", story, "--keep-minutely=1"], "no option"), (["squash", story], "A..B"),
                        (["squash", story, "1"], "A..B"), (["squash", story, "3..3"], "nothing to squash"),
                        (["squash", story, "3..2"], "older"), (["squash", story, "1..7"], "'7'"),
                        (["gc", story, "1"], "one file"), (["gc", f"{story}@1"], "whole history"), (["gc"], "which file?"),
                        (["forget", tmp_path / "none.h5", "1"], "none.h5")]:
        assert said in h5cow(*words, code=2), words
    assert story.read_bytes() == content
    with h5py.File(tmp_path / "plain.h5", "w") as f:
        f["x"] = 1
    for words in (["forget", tmp_path / "plain.h5", "1"], ["squash", tmp_path / "plain.h5", "1..2"], ["gc", tmp_path / "plain.h5"]):
        assert "no history" in h5cow(*words, code=2)


def test_all_options_and_all_readers_know_what_is_gone(story):
    h5cow("forget", story, "2", "4..5")
    assert [row["forgotten"] for row in log(story, "--all")] == [False, True, False, True, True, False]
    assert [row["parent"] for row in log(story, "--all")] == [None, "1", "1", "3", "3", "3"]
    assert h5cow("log", "--all", story).count("(forgotten)") == 3 and "(forgotten)" not in h5cow("log", story)
    assert [row["name"] for row in log(story, "--object=/away", "--all")] == ["3", "6"]
    graph = h5cow("log", "--graph", "--oneline", story).splitlines()[1:]
    assert [line.split()[:2] for line in graph] == [["*", "6"], ["*", "3"], ["*", "1"]]
    assert json.loads(h5cow("stat", "--json", story))["totals"]["versions"] == 3
    assert "made of 3" in h5cow("show", story) and "3 versions" in h5cow("doctor", story)
    changed = {row["path"]: row["changed_in"] for row in json.loads(h5cow("ls", "--json", f"{story}@3"))}
    assert set(changed.values()) <= {"1", "3"}
    done = h5cow("bisect", "--bad", "[3500] > 0", story, "/x")
    assert "version 6" in done and "version 5" not in done
    assert h5cow("help", "--candidates", "ls", f"{story}@").split() == [f"{story}@{n}" for n in (6, 3, 1)]
    assert h5cow("help", "--candidates", "forget", story, "1..").split() == ["1..6", "1..3", "1..1"]
    h5cow("tag", f"{story}@3", "paper")
    assert h5cow("help", "--candidates", "forget", story, "--keep=").split() == [f"--keep={n}" for n in (6, 3, 1, "paper")]
    assert h5cow("help", "--candidates", "forget", story, "--keep-tag=").split() == ["--keep-tag=paper"]
    h5cow("report", story)


def test_undo_and_redo_pass_over_what_is_gone(story):
    before = hashes(story)
    h5cow("forget", story, "4..5")
    h5cow("undo", story)
    assert hashes(story)[7] == before[3]
    h5cow("redo", story)
    assert hashes(story)[8] == before[6]
    h5cow("undo", story)
    h5cow("forget", story, "3", "7..8")
    h5cow("undo", story)
    assert hashes(story)[10] == before[2]


def change_log(path, member, values):
    """As no program does: VALUES, by row, for a member of the log."""
    with h5py.File(path, "r+", libver=("v110", "latest")) as f:
        rows = f["_versioned_data/log"][:]
        for row, value in values.items():
            rows[member][row] = value
        f["_versioned_data/log"][:] = rows


def test_verify_finds_a_tree_that_should_be_gone_and_one_that_should_not(story, tmp_path):
    copy = shutil.copy(story, tmp_path / "copy.h5")
    change_log(copy, "open", {2: 2})
    found = json.loads(h5cow("verify", "--json", copy, code=1))["damage"]
    assert [damage["what"] for damage in found] == ["version '3' is forgotten, as the log says, but it is there"]
    h5cow("forget", story, "3")
    change_log(story, "open", {2: 0})
    found = json.loads(h5cow("verify", "--json", story, code=1))["damage"]
    assert len(found) == 1 and "versions/3" in found[0]["what"]


def test_a_damaged_index_keeps_versions_from_going(story):
    with h5py.File(story, "r+", libver=("v110", "latest")) as f:
        index = f["_versioned_data/index"]
        index[200:] = np.full(index.shape[0] - 200, 7, index.dtype)
    content = story.read_bytes()
    said = h5cow("forget", "-n", story, "--keep-last=1", code=1)
    assert "5 of 6 versions would be forgotten" in said and "is damaged, so this is not all" in said
    for words in (["forget", story, "1"], ["forget", story, "--keep-last=1"], ["squash", story, "1..3"], ["gc", "-n", story]):
        assert "h5cow verify" in h5cow(*words, code=2), words
    assert story.read_bytes() == content
    h5cow("gc", story, code=2)
    assert story.read_bytes() == content


# ---- policies ----

PERIODS = {"hourly": lambda t: t.strftime("%Y-%m-%d %H"), "daily": lambda t: t.date(), "weekly": lambda t: t.isocalendar()[:2],
           "monthly": lambda t: (t.year, t.month), "yearly": lambda t: t.year}


def kept(policy, times):
    """Of versions committed at TIMES, which a policy keeps, by the description of restic."""
    local = [datetime.datetime.fromtimestamp(t) for t in times]
    newest_first = sorted(range(len(times)), key=lambda i: (times[i], i), reverse=True)
    keep = {len(times) - 1}
    for rule, value in policy.items():
        if rule == "last":
            keep |= set(newest_first[:value])
        elif rule == "within":
            months, days = value
            newest = local[newest_first[0]]
            year, month = divmod(newest.year * 12 + newest.month - 1 - months, 12)
            begin = time.mktime((year, month + 1, newest.day - days, newest.hour, newest.minute, newest.second, 0, 0, -1))
            keep |= {i for i, t in enumerate(times) if t >= begin}
        else:
            seen = {}
            for i in newest_first:
                seen.setdefault(PERIODS[rule](local[i]), i)
            keep |= set(list(seen.values())[:value])
    return sorted(keep)


@pytest.mark.parametrize("zone", ["UTC", "CET-1CEST,M3.5.0,M10.5.0/3", "<+1245>-12:45<+1345>,M9.5.0/2:45,M4.1.0/3:45"])
def test_policies_keep_what_the_model_keeps(programs, tmp_path, monkeypatch, zone):
    print(again())
    chance = random.Random(f"{seed()} {zone}")
    path = tmp_path / "many.h5"
    done = programs.python("""
for n in range(40):
    with h5py.File(sys.argv[1], 'a') as f:
        f.attrs['n'] = n
""", path)
    assert done.returncode == 0, done.stderr
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        for _ in range(20):
            end = calendar.timegm((2026, chance.choice([3, 4, 10, 11]), chance.randrange(1, 31), 12, 0, 0))
            span = chance.choice([5e4, 5e5, 5e6, 5e7, 2e8])
            times = [end - int(chance.random() * span) for _ in range(40)]
            if chance.random() < 0.8:
                times.sort()
            change_log(path, "time", {i: t * 1_000_000 for i, t in enumerate(times)})
            rules = chance.sample(["last", *PERIODS, "within"], chance.randrange(1, 4))
            policy = {rule: chance.choice([1, 2, 3, 5, 30]) for rule in rules}
            words = [f"--keep-{rule}={n}" for rule, n in policy.items() if rule != "within"]
            if "within" in policy:
                policy["within"] = (chance.randrange(4), chance.randrange(20))
                words.append("--keep-within={}m{}d".format(*policy["within"]))
            done = subprocess.run([H5COW, "forget", "-n", "--json", path, *words], env={**STOCK, "TZ": zone}, capture_output=True,
                                  text=True)
            assert done.returncode == 0, done.stderr
            told = [v["number"] - 1 for v in json.loads(done.stdout)["versions"] if not v["forget"]]
            assert told == kept(policy, times), (policy, times)
    finally:
        monkeypatch.delenv("TZ")
        time.tzset()


# ---- files of other libraries ----

WRITERS = {
    "h5py": """
with h5py.File(sys.argv[1], 'a') as f:
    if n == 1:
        f.create_dataset('x', (64, 64), 'f4', chunks=(16, 16), compression='gzip', maxshape=(None, 64))
        f['text'] = np.array(['a', 'bc'], dtype=object)
    f['x'].resize((64 + n, 64))
    f['x'][:] = np.random.default_rng(n).random(f['x'].shape)
    f['text'][0] = 'text %d' % n
""",
    "netCDF4": """
import netCDF4
with netCDF4.Dataset(sys.argv[1], 'w' if n == 1 else 'a') as d:
    if n == 1:
        d.createDimension('time', None)
        d.createDimension('place', 500)
        d.createVariable('t', 'f8', ('time', 'place'), zlib=True)
    d['t'][:n] = np.random.default_rng(n).random((n, 500))
    d['t'].step = n
""",
    "tables": """
import tables
with tables.open_file(sys.argv[1], 'a') as f:
    if n == 1:
        f.create_table('/', 'rows', np.dtype([('a', 'i8'), ('b', 'f8')]))
        f.create_earray('/', 'x', tables.Float64Atom(), (0, 100))
    f.root.rows.append([(n, n / 2)] * 300)
    f.root.rows.modify_column(0, 5, column=np.full(5, n), colname='a')
    f.root.x.append(np.random.default_rng(n).random((20, 100)))
""",
}


@pytest.mark.parametrize("library", WRITERS)
def test_files_of_other_libraries(programs, tmp_path, library):
    pytest.importorskip(library)
    path = tmp_path / "a.h5"
    for n in range(1, 9):
        done = programs.python(f"n = {n}\n" + WRITERS[library], path)
        assert done.returncode == 0, done.stderr
    before = hashes(path)
    h5cow("tag", f"{path}@2", "kept")
    told = forget(path, "--keep-last=2", "--keep=4", "--gc")
    assert [v["number"] for v in told["versions"] if not v["forget"]] == [2, 4, 7, 8]
    assert told["collected"]["bytes"] == told["frees"] > 0
    h5cow("squash", path, "4..7")
    h5cow("gc", path)
    assert hashes(path) == {n: before[n] for n in (2, 7, 8)}
    programs.verified(path)
    done = programs.python("n = 9\n" + WRITERS[library], path)
    assert done.returncode == 0, done.stderr
    assert {n: h for n, h in hashes(path).items() if n < 9} == {n: before[n] for n in (2, 7, 8)}
    programs.verified(path)
    h5cow("recover", path, tmp_path / "out.h5")
    assert names(tmp_path / "out.h5") == ["2", "7", "8", "9"]


@pytest.mark.parametrize("n", range(8))
def test_random_histories_keep_what_was_not_forgotten(programs, story, n):
    chance = random.Random(f"{seed()} {n}")
    print(again())
    wanted = hashes(story)
    for _ in range(6):
        there = sorted(wanted)
        what = chance.choice(["forget", "policy", "squash", "gc", "write", "undo"])
        if what == "forget" and len(there) > 1:
            gone = chance.sample(there[:-1], chance.randrange(1, len(there)))
            forget(story, *(f"#{i}" for i in gone))
            wanted = {i: h for i, h in wanted.items() if i not in gone}
        elif what == "policy":
            last = chance.randrange(1, 5)
            forget(story, f"--keep-last={last}", *["--gc"] * chance.randrange(2))
            wanted = {i: wanted[i] for i in there[-last:]}
        elif what == "squash" and len(there) > 1:
            first, last = sorted(chance.sample(there, 2))
            forget(story, f"#{first}..#{last}", verb="squash")
            wanted = {i: h for i, h in wanted.items() if not first <= i < last}
        elif what == "gc":
            foreseen = json.loads(h5cow("gc", "-n", "--json", story))
            assert json.loads(h5cow("gc", "--json", story))["bytes"] == foreseen["bytes"]
        elif what == "write":
            done = programs.python(STORY.replace("default_rng(n)", f"default_rng({chance.randrange(10**6)})"), story, 6)
            assert done.returncode == 0, done.stderr
            wanted[max(hashes(story))] = hashes(story)[max(hashes(story))]
        elif what == "undo":
            subprocess.run([H5COW, "undo", "-q", story], env=STOCK, capture_output=True)
            wanted = {**{i: h for i, h in hashes(story).items() if i > there[-1]}, **wanted}
        assert hashes(story) == wanted, what
    programs.verified(story)


# ---- the option keep= ----

SESSION = """
with h5py.File(sys.argv[1], 'a') as f:
    n = int(sys.argv[2])
    x = f.require_dataset('x', (20000,), 'f8', chunks=(1000,))
    x[:] = np.random.default_rng(n).random(20000)
    f.attrs['n'] = n
    if n % 3 == 0:
        f.require_dataset('zipped', (9000,), 'i8', chunks=(1000,), compression='gzip')[:] = np.arange(9000) // n
    elif 'zipped' in f:
        del f['zipped']
"""


def session(programs, path, n, options="", code=SESSION):
    done = programs.python(code, path, n, options=options, errors=False)
    assert (done.returncode, done.stderr) == (0, "")


def operations(path):
    """The oldest first."""
    return json.loads(h5cow("log", "--operations", "--json", path))[::-1]


def small(path):
    with h5py.File(path, "r") as f:
        return f["small"][0]


def test_keep_bounds_versions_and_size_and_leaves_the_rest_as_it_is(programs, tmp_path):
    path, twin, sizes = tmp_path / "kept.h5", tmp_path / "twin.h5", []
    for n in range(1, 19):
        session(programs, path, n, "keep=last:3")
        session(programs, twin, n)
        sizes.append(path.stat().st_size)
        if n == 3:
            h5cow("tag", f"{path}@2", "paper")
        assert names(path) == [str(i) for i in range(1, n + 1) if i > n - 3 or (i == 2 and n >= 3)]
    whole = hashes(twin)
    assert hashes(path) == {n: whole[n] for n in (2, 16, 17, 18)}
    assert max(sizes[9:]) - max(sizes[:9]) < 160000 < 9 * 160000 < twin.stat().st_size - sizes[-1], sizes
    assert [op["what"] for op in operations(path)] == ["tag paper: version 2", "14 versions forgotten, by keep=last:3"]
    assert json.loads(h5cow("gc", "-n", "--json", path))["chunks"] == 0
    programs.verified(path)


SMALL_SESSIONS = """
for n in range(int(sys.argv[2]), int(sys.argv[3])):
    with h5py.File(sys.argv[1], 'a') as f:
        f.require_dataset('x', (20000,), 'i4', chunks=(1000,))[n * 7919 % 20000] = n
"""


def test_what_keep_does_is_one_row_until_something_else_is_done(programs, tmp_path):
    path = tmp_path / "a.h5"
    programs.python(SMALL_SESSIONS, path, 0, 9, options="keep=last:3")
    first, = operations(path)
    assert (first["what"], first["version"], first["user"] != "", first["program"] != "") == ("6 versions forgotten, by keep=last:3", 9, True, True)
    h5cow("describe", f"{path}@9", "the ninth")
    programs.python(SMALL_SESSIONS, path, 9, 12, options="keep=last:3")
    programs.python(SMALL_SESSIONS, path, 12, 14, options="keep=last:2")
    assert [op["what"] for op in operations(path)] == [
        first["what"], "version 9 described anew; it was: ", "3 versions forgotten, by keep=last:3", "3 versions forgotten, by keep=last:2"]
    programs.verified(path)


def test_a_forgotten_version_costs_little_more_than_its_row(programs, tmp_path):
    path, sizes = tmp_path / "a.h5", []
    for first in range(0, 600, 200):
        programs.python(SMALL_SESSIONS, path, first, first + 200, options="keep=last:3")
        sizes.append(path.stat().st_size)
    assert (sizes[2] - sizes[1]) / 200 < 700, sizes
    rows = log(path, "--all")
    assert [row["name"] for row in rows] == [str(n) for n in range(1, 601)] and all(row["user"] for row in rows)
    assert all(not row["program"] and not row["host"] for row in rows[:500]) and all(row["program"] for row in rows[-3:])
    programs.verified(path)


def heap_texts(content, at):
    """The texts in a block of HDF5's global heap: number (uint16; 0: none), 6 bytes, size (uint64), what it is, each from 16 on."""
    texts, end, at = [], at + int.from_bytes(content[at + 8 : at + 16], "little"), at + 16
    while at + 16 <= end and content[at : at + 2] != b"\0\0":
        size = int.from_bytes(content[at + 8 : at + 16], "little")
        texts.append(bytes(content[at + 16 : at + 16 + size]).rstrip(b"\0"))
        at += 16 + (size + 7) // 8 * 8
    return texts


def blocks_of_forgotten(content, user, kept):
    """Where the blocks of heaps begin that have nothing but what is left of many forgotten versions: which these are HDF5 decides."""
    for at in (match.start() for match in re.finditer(b"GCOL", bytes(content))):
        texts = heap_texts(content, at)
        if len(texts) > 9 and all(text == user or (text.isdigit() and int(text) < kept) for text in texts):
            yield at


def test_keep_goes_on_where_rows_of_forgotten_versions_are_damaged(programs, tmp_path):
    path, user, spoilt, made = tmp_path / "a.h5", pwd.getpwuid(os.geteuid()).pw_name.encode(), [], 0
    while not spoilt:
        assert made < 3000
        programs.python(SMALL_SESSIONS, path, made, made + 150, options="keep=last:3")
        made += 150
        content = bytearray(path.read_bytes())
        spoilt = list(blocks_of_forgotten(content, user, made - 50))
    for at in spoilt:
        content[at : at + 4] = b"gone"
    path.write_bytes(content)
    done = programs.python(SMALL_SESSIONS, path, made, made + 60, options="keep=last:3")
    assert (done.returncode, done.stderr) == (0, "")
    with h5py.File(path, "r") as f:
        assert sorted(map(int, f["_versioned_data/versions"])) == [made + 58, made + 59, made + 60]
    h5cow("verify", path, code=1)


def test_a_forgotten_row_keeps_who_made_it_and_what_they_said(programs, story):
    before = {row["name"]: row for row in log(story)}
    h5cow("describe", f"{story}@2", "a wrong sensor")
    forget(story, "2", "4")
    after = {row["name"]: row for row in log(story, "--all")}
    for name, row in after.items():
        gone = name in ("2", "4")
        assert row["forgotten"] == gone
        for member in ("host", "program", "hdf5", "h5cow"):
            assert row[member] == ("" if gone else before[name][member]) and before[name][member]
        assert (row["user"], row["time_us"], row["added"]) == tuple(before[name][member] for member in ("user", "time_us", "added"))
    assert after["2"]["message"] == "a wrong sensor" and after["4"]["message"] == before["4"]["message"]
    with h5py.File(story, "r") as f:
        assert bytes(f["_versioned_data/log"][1]["program"]) == b""
    programs.verified(story)


def test_keep_waits_for_a_quarter_more(programs, tmp_path):
    path, counts = tmp_path / "a.h5", []
    for n in range(1, 24):
        session(programs, path, n, "keep=last:8,daily:2", "with h5py.File(sys.argv[1], 'a') as f: f.attrs['n'] = int(sys.argv[2])")
        counts.append(len(names(path)))
    assert counts[:9] == [*range(1, 10)] and counts[9:] == [8 if n % 2 else 9 for n in range(1, 15)]
    programs.verified(path)


def test_keep_is_for_those_who_may_write_whether_they_do_or_not(programs, story):
    content, before = story.read_bytes(), hashes(story)
    done = programs.python("with h5py.File(sys.argv[1]) as f: print(f['small'][0])", story, options="keep=last:2")
    assert (done.stdout, done.stderr) == (f"{VERSIONS}\n", "") and story.read_bytes() == content
    session(programs, story, 0, "keep=last:2", "h5py.File(sys.argv[1], 'a').close()")
    assert hashes(story) == {n: before[n] for n in (5, 6)}


def test_keep_leaves_a_version_that_is_open_until_it_is_closed(programs, story):
    done = programs.python("""
f, old = h5py.File(sys.argv[1], 'a'), h5py.File(sys.argv[1] + '@1')
x = old['x']
f['small'][0] = 77
f.close()
print(x[:1000].tobytes() == np.random.default_rng(1).random(1000).tobytes(), old['small'][0])
old.close()
""", story, options="keep=last:2")
    assert (done.returncode, done.stdout) == (0, "True 1\n"), done.stderr
    assert small(story) == 77 and names(story)[-1] == "7"
    session(programs, story, 0, "keep=last:2", "h5py.File(sys.argv[1], 'a').close()")
    assert names(story) == ["6", "7"]
    programs.verified(story)


def test_keep_after_flushes_that_are_versions(programs, story):
    done = programs.python("""
with h5py.File(sys.argv[1], 'a') as f:
    for n in range(10, 20):
        f['small'][0] = n
        f.flush()
    f['small'][1] = 20
""", story, options="keep=last:3;commit=flush")
    assert (done.returncode, done.stderr) == (0, "")
    assert names(story) == [str(VERSIONS + n) for n in (9, 10, 11)]
    for n, values in (9, [18, 2, 3]), (10, [19, 2, 3]), (11, [19, 20, 3]):
        with h5py.File(story, "r") as f:
            assert list(f[f"_versioned_data/versions/{VERSIONS + n}/small"]) == values
    programs.verified(story)


def test_keep_and_a_program_that_does_not_close(programs, story):
    done = programs.python("""
import ctypes
f = h5py.File(sys.argv[1], 'a')
f['small'][0] = 77
ctypes.CDLL(None).exit(0)
""", story, options="keep=last:2")
    assert (done.returncode, done.stderr) == (0, "")
    assert small(story) == 77 and names(story)[-1] == str(VERSIONS + 1)
    programs.verified(story)
    session(programs, story, 7, "keep=last:2", "h5py.File(sys.argv[1], 'a').close()")
    assert names(story) == [str(VERSIONS), str(VERSIONS + 1)]


def test_keep_that_cannot_be_done_is_no_error_of_the_program(programs, story):
    done = programs.python("""
with h5py.File(sys.argv[1], 'a') as f:
    layout = h5py.VirtualLayout((40000,), 'f8')
    layout[:] = h5py.VirtualSource('.', '/_versioned_data/versions/6/x', (40000,))
    f.create_virtual_dataset('shown', layout)
""", story, options="keep=last:2")
    assert done.returncode == 0 and done.stderr.count("\n") == 1
    assert "what keep=last:2 says could not be done in full, all else is committed" in done.stderr
    assert "nothing is freed" in done.stderr
    assert names(story) == ["6", "7"]
    h5cow("gc", story, code=2)
    session(programs, story, 0, "", "with h5py.File(sys.argv[1], 'a') as f: del f['shown']")
    h5cow("forget", story, "7", "--gc")
    programs.verified(story)


def test_keep_in_a_damaged_file_is_no_error_of_the_program(programs, story):
    with h5py.File(story, "r") as f:
        place = f["_versioned_data/index"].id.get_chunk_info(0).byte_offset + 20
    with open(story, "r+b") as f:  # a leaf that version 1 alone has
        content = f.read()
        f.seek(place)
        f.write(bytes([content[place] ^ 1]))
    done = programs.python("with h5py.File(sys.argv[1], 'a') as f: f['small'][0] = 77", story, options="keep=last:7")
    assert (done.returncode, done.stderr, small(story)) == (0, "", 77)
    h5cow("tag", f"{story}@1", "damaged")
    done = programs.python("with h5py.File(sys.argv[1], 'a') as f: f['small'][0] = 78", story, options="keep=last:2")
    assert done.returncode == 0 and small(story) == 78
    assert "could not be done in full, all else is committed: the index record" in done.stderr
    assert names(story) == ["1", "7", "8"] and "index record" in h5cow("verify", story, code=1)


def test_what_a_deleted_dataset_had_last_is_foreseen_as_it_is_freed(programs, tmp_path):
    path = tmp_path / "a.h5"
    for code in ("f.create_dataset('x', (3000,), 'f8', chunks=(1000,))[:] = np.arange(3000)",
                 "f['x'][:1000] = np.random.default_rng(1).random(1000)", "del f['x']", "f['y'] = 1", "f['y'][()] = 2"):
        session(programs, path, 0, "", f"with h5py.File(sys.argv[1], 'a') as f: {code}")
    for gone in ("2", "1", "3", "4"):
        forget(path, gone)
        foreseen, done = (json.loads(h5cow("gc", *words, "--json", path)) for words in (["-n"], []))
        assert [foreseen[of] for of in ("chunks", "bytes")] == [done[of] for of in ("chunks", "bytes")], gone
        programs.verified(path)
    assert names(path) == ["5"]


# ---- what HDF5 does by itself ----

AGAIN = """
for n in range(4):
    with h5py.File(sys.argv[1], 'r+', libver='latest') as f:
        for i in range(40):
            f['k%d_%d' % (n, i)] = np.full(400, n)
            f['k%d_%d' % (n, i)].attrs['t'] = 'x' * 500
    with h5py.File(sys.argv[1], 'r+', libver='latest') as f:
        for i in range(38):
            del f['k%d_%d' % (n, i)]
"""
REUSE = """
from h5py import h5f, h5p
held = None
if len(sys.argv) > 2: # HDF5 keeps the file open, for its links to it
    import ctypes
    fapl = h5p.create(h5p.FILE_ACCESS)
    library = ctypes.CDLL([l.split()[-1] for l in open('/proc/self/maps') if 'libhdf5_serial.so' in l][0])
    assert library.H5Pset_elink_file_cache_size(ctypes.c_int64(fapl.id), ctypes.c_uint(8)) >= 0
    held = h5py.File(h5f.open(sys.argv[2].encode(), h5f.ACC_RDWR, fapl))
    held['e'][()]
for n in range(5):
    with h5py.File(sys.argv[1], 'r+', libver='latest') as f:
        for i in range(30):
            f['r%d_%d' % (n, i)] = np.full(300, n * 1000 + i)
            f['r%d_%d' % (n, i)].attrs['t'] = 'y' * 300
        for i in range(0, 30, 3):
            del f['r%d_%d' % (n, i)]
    if held is not None:
        held['e'][()]
    with h5py.File(sys.argv[1], 'r') as f:
        for k in [k for k in f if k[0] == 'r']:
            a, b = k[1:].split('_')
            assert (f[k][()] == int(a) * 1000 + int(b)).all() and f[k].attrs['t'] == 'y' * 300, k
"""


@pytest.mark.parametrize("strategy", ["fsm", "page"])
def test_free_space_that_hdf5_keeps_itself_is_left_to_it(programs, tmp_path, strategy):
    """HDF5 1.14.5 goes round in circles in such files where much was freed at once: only compacting frees something."""
    path = tmp_path / "a.h5"
    create = f"h5py.File(sys.argv[1], 'w', libver='latest', fs_strategy='{strategy}', fs_persist=True).close()"
    for program in (create, AGAIN):
        assert programs.python(program, path).returncode == 0
    done = subprocess.run([H5COW, "forget", "--gc", path, "--keep-last=1"], env=STOCK, capture_output=True, text=True)
    assert done.returncode != 0 and "gc --compact" in done.stderr, done.stderr
    done = programs.python(REUSE, path)
    assert done.returncode == 0, done.stderr
    h5cow("gc", "--compact", path)
    h5cow("verify", path)


def test_free_places_are_given_out_once_while_hdf5_keeps_the_file_open(programs, tmp_path):
    path, linking = tmp_path / "a.h5", tmp_path / "b.h5"
    create = "f = h5py.File(sys.argv[1], 'w'); f['keep'] = [1]; f.close()"
    link = "f = h5py.File(sys.argv[1], 'w'); f['e'] = h5py.ExternalLink(sys.argv[2], '/keep'); f.close()"
    for words in ((create, path), (link, linking, path), (AGAIN, path)):
        done = programs.python(*words)
        assert done.returncode == 0, done.stderr
    h5cow("forget", "--gc", path, "--keep-last=1")
    done = programs.python(REUSE, path, linking)
    assert done.returncode == 0 and "not complete" not in done.stderr, done.stderr
    h5cow("verify", path)


def test_a_copy_that_was_deleted_at_once_leaves_nothing(programs, tmp_path):
    path = tmp_path / "a.h5"
    create = "f = h5py.File(sys.argv[1], 'w'); f.create_dataset('x', data=np.arange(9000.), chunks=(100,)); f.close()"
    copy = "f = h5py.File(sys.argv[1], 'r+'); f.copy('x', 'y'); f['y'][0] = 7; del f['y']; f['z'] = 1; f.close()"
    for program in (create, copy):
        done = programs.python(program, path)
        assert done.returncode == 0, done.stderr
    h5cow("verify", path)
    h5cow("gc", path)
    h5cow("verify", path)


# ---- found by an attacker, and by the differential test --------------------------------------------------------------


BLOCK = """
n = int(sys.argv[2])
with h5py.File(sys.argv[1], 'a', libver='latest', **({'userblock_size': 2048} if n == 0 else {})) as f:
    x = f.require_dataset('x', (32, 4096), 'i8', chunks=(1, 4096))
    for row in range(32):
        if row % 2 or n == 0:
            x[row] = np.random.default_rng(100 * n + row).integers(0, 1 << 40, 4096)
"""


def test_holes_are_where_nothing_is_needed_behind_a_user_block(programs, tmp_path):
    path = tmp_path / "a.h5"
    for n in range(5):
        assert programs.python(BLOCK, path, n).returncode == 0
    forget(path, "2", "3", "4", "--gc")
    h5cow("verify", path)
    with h5py.File(path, "r") as f:
        for row in range(32):
            want = np.random.default_rng(400 * (row % 2) + row).integers(0, 1 << 40, 4096)
            assert (f["x"][row] == want).all(), row


UNLINKED = """
with h5py.File(sys.argv[1], 'a', libver='latest') as f:
    if sys.argv[2] == '1':
        g = f.create_group('g')
        g['x'], g.attrs['a'] = np.arange(20000.0), 'hello'
        f.attrs['to'] = g.ref
    elif sys.argv[2] == '2':
        f.move('g', 'g/self')
    elif sys.argv[2] == '3':
        for i in range(60):
            f.create_group('k%d' % i).attrs['i'] = i
    else:
        f['back'] = f[f.attrs['to']]
"""


def test_what_no_link_leads_to_is_kept_for_versions_to_come(programs, tmp_path):
    """A group that was moved into itself lives, though the only version that has it goes."""
    path = tmp_path / "a.h5"
    for n in (1, 2):
        assert programs.python(UNLINKED, path, n).returncode == 0
    forget(path, "1", "--gc")
    h5cow("verify", path)
    for n in (3, 4):
        done = programs.python(UNLINKED, path, n)
        assert done.returncode == 0 and done.stderr == "", done.stderr
    assert not log(path)[-1]["incomplete"]
    seen = programs.python("f = h5py.File(sys.argv[1] + '@4', 'r'); print(f['back/x'][5:8].tolist(), f['back'].attrs['a'])", path)
    assert seen.stdout.split("\n")[0] == "[5.0, 6.0, 7.0] hello", seen.stderr
    h5cow("verify", path)


DEEP = """
with h5py.File(sys.argv[1], 'a', libver='latest') as f:
    if sys.argv[2] == '1':
        g = f
        for i in range(1500):
            g = g.create_group('g')
        g['x'] = np.arange(5000)
    elif sys.argv[2] == '2':
        del f['g']
    else:
        f['more'] = 1
"""


def test_deep_groups_go(programs, tmp_path):
    path = tmp_path / "a.h5"
    for n in (1, 2, 3):
        done = programs.python(DEEP, path, n)
        assert done.returncode == 0, done.stderr
    assert forget(path, "1", "--gc")["forgotten"] == 1
    h5cow("verify", path)


def test_a_dataset_with_all_its_links_in_what_goes_goes_with_it(programs, tmp_path):
    """HDF5 deletes it with the last of them: two in one group, or one each in two."""
    path = tmp_path / "a.h5"
    story = """
with h5py.File(sys.argv[1], 'a') as f:
    n = int(sys.argv[2])
    if n == 1:
        f['kept'] = [1]
        for g in ('a', 'b/c'):
            f.create_dataset(g + "/twice", data=np.random.default_rng(len(g)).random(5000), chunks=(500,))
            f[g + '/once more'] = f[g + '/twice']
        f['b/d/twice'] = f['b/c/twice']
    if n == 2:
        del f['a'], f['b']
    f['kept'][0] = n
"""
    for n in range(1, 5):
        assert programs.python(story, path, n).returncode == 0
    assert forget(path, "1", "2")["forgotten"] == 2
    with h5py.File(path, "r") as f:  # docs/format.md: as after one that has one link; 'kept' is an ordinary dataset
        assert len(f["_versioned_data/heads"]) == 0
        assert set(f["_versioned_data/datasets"]["root"]) == {2**64 - 1}
    h5cow("gc", path)
    h5cow("verify", path)


def test_a_type_is_held_before_the_dataset_that_used_it_is_let_go(programs, tmp_path):
    """Both live without a link, by a count of the program's. What holds the dataset's snapshot is all that keeps the type's."""
    path = tmp_path / "a.h5"
    story = """
import ctypes
count = ctypes.CDLL(h5py.h5f.__file__)
for name in ('H5Oincr_refcount', 'H5Odecr_refcount'):
    getattr(count, name).argtypes = [ctypes.c_int64]
with h5py.File(sys.argv[1], 'a') as f:
    n = int(sys.argv[2])
    if n == 1:
        f['kept'] = [1]
        f['type'] = np.dtype('f8')
        h5py.h5d.create(f.id, b'x', f['type'].id, h5py.h5s.create_simple((4000,)))
        f['reference'] = np.array([f['type'].ref, f['x'].ref], dtype=h5py.ref_dtype)
    type, x = f['reference'][()]
    if n == 2:
        for name in 'x', 'type':
            item = f[name]
            assert count.H5Oincr_refcount(item.id.id) >= 0
            del f[name]
    if n == 4:
        item = f[x]
        assert count.H5Odecr_refcount(item.id.id) >= 0
        del item
    if n > 5:
        for i in range(40):
            f[f'{n}/{i}'] = np.dtype('>i4')  # as long as the other one
    f['kept'][0] = n
    assert f[type].dtype == 'f8'
"""
    for n in range(1, 10):  # the last ones use what has become free
        done = programs.python(story, path, n)
        assert done.returncode == 0, done.stderr
        if n == 3:
            assert forget(path, "1")["forgotten"] == 1
            h5cow("gc", path)  # from now on free places are remembered, and used
        if n == 5:
            assert forget(path, "2", "3")["forgotten"] == 2
            assert "no damage" in h5cow("verify", path)
            with h5py.File(path, "r") as f:  # docs/format.md: the type's snapshot, and no other one
                held = f["_versioned_data/held"]
                assert [type(held[name]) for name in held] == [h5py.Datatype]
    h5cow("gc", path)
    look = "with h5py.File(sys.argv[1], 'r') as f: assert f[f['reference'][0]].dtype == 'f8' and f['kept'][0] == int(sys.argv[2])"
    for version in "4", "5":
        done = programs.python(look, f"{path}@{version}", version)
        assert done.returncode == 0, done.stderr
    assert "no damage" in h5cow("verify", path)


@pytest.mark.parametrize("case", [2, 22, 55, "drawn"])
def test_where_a_dataset_was_deleted_something_of_a_version_may_have_been(programs, tmp_path, case):
    """A copy gives a dataset a root at once; made and deleted in one session it stays in the table of datasets. Where it was, other
    objects came, which went with their versions, and others may come: gc must not have read there into HDF5's cache."""
    path, rng = tmp_path / "a.h5", np.random.default_rng(seed() if case == "drawn" else case)  # 2, 22 and 55 failed
    story = """
with h5py.File(sys.argv[1], 'a', libver=sys.argv[2]) as f:
    copies, *groups = map(int, sys.argv[3:])
    if 'kept' not in f:
        f.create_dataset('kept', data=np.arange(1000.), chunks=(100,))
    for i in range(copies):
        f.copy('kept', f'copy {i}')
    for i in range(copies):
        del f[f'copy {i}']
    for i, large in enumerate(groups):
        f.require_group(f'g{i}').attrs['large'] = np.arange(large)
    for name in list(f) if not groups else []:
        if name != 'kept':
            del f[name]
    f['kept'][0] += 1
"""
    libver = ("earliest", "latest")[rng.integers(2)]
    for much in (False, True, True, False):
        numbers = [rng.integers(2, 40), *rng.integers(1, 300, rng.integers(1, 30))] if much else [0]
        assert programs.python(story, path, libver, *numbers).returncode == 0
    assert forget(path, "--keep-last", "1", "--gc")["forgotten"] == 3
    assert "no damage" in h5cow("verify", path)
    with h5py.File(path, "r") as f:
        assert f["_versioned_data/datasets"]["root"][1:].tolist().count(2**64 - 1) == len(f["_versioned_data/datasets"]) - 1
