"""The command from outside: run, log, stat, export, verify, on files that unmodified h5py programs make.

What is damaged here is damaged with plain h5py or by changing bytes, as an accident would.
"""

import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import time

import h5py
import numpy as np
import pytest
from conftest import H5COW, STOCK as ENV, TEST, h5cow
from waiting import WAITING
from seeds import seed


def program(path, text, *options):
    """Run TEXT as an h5py program with `f` = the name of the file, through the connector."""
    text = "import h5py, numpy as np\n" + textwrap.dedent(text)
    return h5cow("run", *options, "--", sys.executable, "-c", text.replace("FILE", repr(str(path))))


FIRST = """
with h5py.File(FILE, 'w', track_order=True) as h:
    t = h.create_dataset('t', data=np.arange(2000, dtype='i4').reshape(200, 10), chunks=(2, 10), maxshape=(None, 10),
                         compression='gzip', shuffle=True, fillvalue=-5)
    h.create_dataset('plain', data=np.arange(50000.))
    h.create_dataset('text', data=np.array(['a', 'bb', 'ccc'], dtype=object), dtype=h5py.string_dtype(), chunks=(2,))
    g = h.create_group('zebra', track_order=True)
    g['one'] = t
    g['tiny'] = np.arange(5.)
    h['named'] = np.dtype([('x', 'i2'), ('y', '>f8')])
    h.create_dataset('table', shape=(7,), dtype=h['named'])
    h['soft'] = h5py.SoftLink('/zebra/tiny')
    h['outside'] = h5py.ExternalLink('other.h5', '/x')
    h.create_dataset('refs', data=[t.ref, g.ref, h5py.Reference()], dtype=h5py.ref_dtype)
    t.make_scale('time')
    h['plain'].attrs['to'] = t.ref
    h['plain'].attrs['words'] = ['x', 'yy']
    h.attrs['history'] = 'made'
"""
SECOND = """
with h5py.File(FILE, 'a') as h:
    h['t'][33] = -1
    h['text'][1] = 'changed'
"""
THIRD = """
with h5py.File(FILE, 'a') as h:
    h['t'].resize((230, 10))
    h['t'][220:] = 7
    h.attrs['history'] = 'extended'
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A file of three versions, and natively made twins of each of them."""
    folder = tmp_path_factory.mktemp("cli")
    path = folder / "a.h5"
    for number, text in enumerate((FIRST, SECOND, THIRD), 1):
        program(path, text, "-m", f"step {number}; 100 %\nsecond line")
        for twin in range(number, 4):
            code = "import h5py, numpy as np\n" + text.replace("FILE", repr(str(folder / f"twin{twin}.h5")))
            subprocess.run([sys.executable, "-c", code], check=True, env=ENV)
    return path


@pytest.fixture
def copy(made, tmp_path):
    return pathlib.Path(shutil.copy(made, tmp_path / "copy.h5"))


def test_an_option_that_is_not_there_is_named(made):
    for words, option in [(["-xu"], "-x"), (["-ux"], "-x"), (["--foo"], "--foo"), (["--json=3"], "--json=3")]:
        assert f"there is no option '{option}'" in h5cow("log", *words, made, code=2)


# ---- run ------------------------------------------------------------------------------------------------------------


def test_run_passes_on_exit_codes_and_signals():
    assert "uses no HDF5" in h5cow("run", "--", "sh", "-c", "exit 7", code=7)
    h5cow("run", "--", "sh", "-c", "kill -9 $$", code=137)
    assert "cannot run 'no-such-program'" in h5cow("run", "--", "no-such-program", code=127)
    h5cow("run", "--", "/", code=126)


def test_run_forwards_signals_that_were_sent_to_it_alone():
    child = subprocess.Popen(
        [H5COW, "run", "--", "sh", "-c", "trap 'exit 5' TERM; echo ready; while :; do sleep 0.05; done"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=ENV,
    )
    assert child.stdout.readline() == b"ready\n"
    child.send_signal(signal.SIGTERM)
    assert child.wait(timeout=WAITING) == 5


def test_run_starts_the_command_with_files_and_signals_as_they_were():
    look = "for n in 0 1 2; do [ -e /proc/$$/fd/$n ] && echo $n; done; grep SigIgn /proc/$$/status"
    done = subprocess.run(["sh", "-c", 'exec "$0" "$@" <&- 2>&-', H5COW, "run", "-q", "--", "sh", "-c", look],
                          env=ENV, stdout=subprocess.PIPE, text=True, timeout=WAITING)
    open_files, ignored = done.stdout.split("SigIgn:")
    assert open_files.split() == ["1"]
    assert not int(ignored, 16) & 1 << (signal.SIGXFSZ - 1)  # which the command itself ignores


def test_run_gives_the_command_its_standard_input():
    assert h5cow("run", "--", "cat", input="through\n") == "through\n"


def test_run_refuses_before_running_when_an_option_is_bad(tmp_path):
    told = h5cow("run", "-o", "compress=bogus", "--", "touch", tmp_path / "ran", code=2)
    assert "compress" in told and "zstd" in told
    assert not (tmp_path / "ran").exists()


def test_run_refuses_when_the_plugin_is_not_there(tmp_path):
    alone = shutil.copy(H5COW, tmp_path / "h5cow")
    done = subprocess.run([alone, "run", "--", "touch", tmp_path / "ran"], capture_output=True, text=True, env=ENV)
    if done.returncode == 0:
        pytest.skip("h5cow is installed on this machine: the plugin is found there")
    assert done.returncode == 2 and "libh5cow.so is nowhere" in done.stderr
    assert not (tmp_path / "ran").exists()


def test_run_refuses_a_plugin_that_does_not_load(tmp_path):
    alone = shutil.copy(H5COW, tmp_path / "h5cow")
    (tmp_path / "libh5cow.so").write_text("not a library")
    done = subprocess.run([alone, "run", "--", "touch", tmp_path / "ran"], capture_output=True, text=True, env=ENV)
    assert done.returncode == 2 and "the system cannot load it" in done.stderr
    assert not (tmp_path / "ran").exists()


def test_run_refuses_when_plugins_are_forbidden(tmp_path):
    told = h5cow("run", "--", "touch", tmp_path / "ran", code=2, env={**ENV, "HDF5_PLUGIN_PRELOAD": "::"})
    assert "HDF5_PLUGIN_PRELOAD" in told and not (tmp_path / "ran").exists()


def test_run_says_whether_a_file_was_opened_through_it(tmp_path):
    words = [H5COW, "run", "--", sys.executable, "-c", "import h5py,sys; h5py.File(sys.argv[1],'w').close()"]
    used = subprocess.run([*words, tmp_path / "x.h5"], capture_output=True, text=True, env=ENV)
    unused = subprocess.run([H5COW, "run", "--", "true"], capture_output=True, text=True, env=ENV)
    assert (used.returncode, used.stderr) == (0, "")
    assert unused.returncode == 0 and "no HDF5 file was opened through h5cow" in unused.stderr


def test_run_at_shows_an_old_version(made):
    script = "import h5py,sys; print(h5py.File(sys.argv[1])['t'].shape, h5py.File(sys.argv[1])['t'][33, 0])"
    assert h5cow("run", "--at", "1", "--", sys.executable, "-c", script, made).strip() == "(200, 10) 330"
    assert h5cow("run", "--at", "~1", "--", sys.executable, "-c", script, made).strip() == "(200, 10) -1"


def test_wrong_usage_is_one_sentence_and_code_2(tmp_path):
    for words in (["frobnicate"], ["run"], ["run", "-o", "x", "true"], ["log"], ["log", "--no", "x"], ["stat", "a", "b"],
                  ["export", "x"], ["verify"], ["log", tmp_path / "missing.h5"], ["verify", __file__]):
        told = h5cow(*words, code=2)
        assert told.startswith("h5cow: ") and len(told.splitlines()) <= 2, told


def test_every_verb_has_help():
    for verb in ("run", "log", "ls", "show", "diff", "blame", "bisect", "hash", "stat", "report", "export", "cp", "restore", "undo", "redo", "tag", "rename", "describe", "verify", "doctor"):
        assert verb in h5cow("--help")
        assert h5cow(verb, "--help").startswith(f"Usage: h5cow {verb}")


# ---- log ------------------------------------------------------------------------------------------------------------


def test_log_lists_versions_newest_first(made):
    rows = json.loads(h5cow("log", "--json", made))
    assert [row["name"] for row in rows] == ["3", "2", "1"]
    assert [row["parent"] for row in rows] == ["2", "1", None]
    assert rows[0]["message"] == "step 3; 100 %\nsecond line"
    assert all(row["added"] > 0 and not row["open"] and row["user"] for row in rows)
    assert abs(rows[0]["time_us"] / 1e6 - time.time()) < 3600
    lines = h5cow("log", made).splitlines()
    assert len(lines) == 4 and [line.split()[0] for line in lines] == ["version", "3", "2", "1"]


def test_log_of_some_versions(made):
    def names(*words):
        return [row["name"] for row in json.loads(h5cow("log", "--json", *words, made))]

    rows = {row["name"]: row for row in json.loads(h5cow("log", "--json", made))}
    at = {}
    for name, row in rows.items():
        seconds, fraction = divmod(row["time_us"], 1_000_000)
        at[name] = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{fraction:06}Z"
    assert names("-n", 2) == ["3", "2"] and names("--number=0") == [] and names("-n", 9) == ["3", "2", "1"]
    assert names("--since", at["2"]) == ["3", "2"] and names("--until", at["2"]) == ["2", "1"]
    assert names("--since", at["2"], "--until", at["2"]) == ["2"] and names("--until", at["3"], "-n", 1) == ["3"]
    assert names("--since", "1 year ago") == ["3", "2", "1"] and names("--until", "1 year ago") == []
    assert names("--object", "/t") == ["3", "2", "1"] and names("--object", "/text") == ["2", "1"]
    assert names("--object", "/plain") == ["1"] and names("--object", "/", "-n", 1) == ["3"]
    lines = h5cow("log", "--oneline", "-n", 1, made).splitlines()
    assert [line.split()[0] for line in lines] == ["version", "3"] and "step 3" in lines[1] and "python" not in lines[1]
    for words, sentence in ((["-n", "x"], "--number wants"), (["--since", "soon"], "--since wants a time"),
                            (["--object", "t"], "begins with '/'"), (["--object", "/never"], "no version")):
        assert sentence in h5cow("log", *words, made, code=2)


def test_a_version_by_how_long_ago(made):
    assert h5cow("stat", f"{made}@{{now}}") == h5cow("stat", f"{made}@3")
    assert h5cow("stat", f"{made}@{{0 seconds ago}}") == h5cow("stat", f"{made}@3")
    assert "there is no version" in h5cow("stat", f"{made}@{{2 years ago}}", code=2)
    assert "is not a revision" in h5cow("stat", f"{made}@{{soon}}", code=2)


def test_log_reads_a_table_with_columns_it_does_not_know(tmp_path):
    text = h5py.string_dtype()
    row = np.dtype([("later", "f8"), ("time", "i8"), ("name", text), ("parent", "i8"), ("message", text)])
    with h5py.File(tmp_path / "f.h5", "w") as h:
        group = h.create_group("_versioned_data")
        group.attrs["format"] = np.uint32(1)
        rows = np.array([(0.5, 0, "first", -1, "\x1b[31mred\nline"), (1.5, 10**15, "ü", 0, "")], dtype=row)
        group.create_dataset("log", data=rows, maxshape=(None,), chunks=(16,))
    rows = json.loads(h5cow("log", "--json", tmp_path / "f.h5"))
    assert [(r["name"], r["parent"], r["user"]) for r in rows] == [("ü", "first", ""), ("first", None, "")]
    assert rows[1]["time"] == "1970-01-01T00:00:00.000000Z" and rows[0]["time"] == "2001-09-09T01:46:40.000000Z"
    table = h5cow("log", tmp_path / "f.h5")
    assert "\x1b" not in table and r"\x1b[31mred\nline" in table and table.count("\n") == 3


def test_a_plain_file_has_no_history(tmp_path):
    h5py.File(tmp_path / "plain.h5", "w").close()
    for verb in ("log", "stat", "verify"):
        assert "has no history" in h5cow(verb, tmp_path / "plain.h5", code=2)
    assert "created without h5cow" in h5cow("doctor", tmp_path / "plain.h5", code=1)


# ---- stat -----------------------------------------------------------------------------------------------------------


def test_stat_counts_chunks_and_distinct_chunks(tmp_path):
    path = tmp_path / "s.h5"
    program(path, """
        with h5py.File(FILE, 'w') as h:
            h.create_dataset('same', data=np.ones((64, 100)), chunks=(8, 100))
            h.create_dataset('zip', data=np.zeros(4096, 'f4'), chunks=(1024,), compression='gzip', compression_opts=7)
        """)
    program(path, "with h5py.File(FILE, 'a') as h: h['same'][0] = 2")
    told = json.loads(h5cow("stat", "--json", path))
    rows = {row["path"]: row for row in told["datasets"]}
    assert (rows["/same"]["chunks"], rows["/same"]["distinct_chunks"]) == (8, 2)
    assert rows["/same"]["logical_bytes"] == 64 * 100 * 8 and rows["/same"]["stored_bytes"] == 2 * 6400
    assert rows["/same"]["type"] == "float64" and rows["/same"]["chunk_shape"] == [8, 100]
    assert rows["/zip"]["filters"] == "gzip 7" and rows["/zip"]["distinct_chunks"] == 1
    assert told["totals"]["versions"] == 2 and told["totals"]["file_bytes"] == path.stat().st_size
    assert told["totals"]["logical_bytes_of_all_versions"] == 2 * (51200 + 16384)
    old = {row["path"]: row for row in json.loads(h5cow("stat", "--json", f"{path}@1"))["datasets"]}
    assert old["/same"]["distinct_chunks"] == 1
    assert "/same" in h5cow("stat", path)


# ---- export ---------------------------------------------------------------------------------------------------------


def same(a, b):
    """Everything that h5py shows of two open files."""
    assert list(a.attrs) == list(b.attrs)
    seen = {}

    def compare(x, y, path):
        assert type(x) is type(y), path
        assert sorted(x.attrs) == sorted(y.attrs), path
        for name in x.attrs:
            compare_values(a, b, x.attrs[name], y.attrs[name], f"{path}@{name}")
        if isinstance(x, h5py.Dataset):
            assert (x.shape, x.maxshape, x.chunks, x.compression, x.compression_opts, x.shuffle) == (
                y.shape, y.maxshape, y.chunks, y.compression, y.compression_opts, y.shuffle), path
            assert x.id.get_type().equal(y.id.get_type()) or x.dtype == y.dtype, path
            assert x.id.get_type().committed() == y.id.get_type().committed(), path
            assert not y.is_virtual
            compare_values(a, b, x[()], y[()], path)
        elif isinstance(x, h5py.Group):
            assert list(x) == list(y), path
            for name in x:
                link = x.get(name, getlink=True)
                assert type(link) is type(y.get(name, getlink=True))
                if isinstance(link, h5py.SoftLink):
                    assert link.path == y.get(name, getlink=True).path
                elif isinstance(link, h5py.HardLink):
                    key = h5py.h5o.get_info(x[name].id).addr
                    if key in seen:
                        assert y[name] == seen[key], f"{path}/{name} is not the same object any more"
                    else:
                        seen[key] = y[name]
                        compare(x[name], y[name], f"{path}/{name}")

    compare(a["/"], b["/"], "")


def compare_values(a, b, x, y, path):
    x, y = np.asarray(x), np.asarray(y)
    assert x.shape == y.shape and x.dtype == y.dtype, path
    for p, q in zip(x.ravel(), y.ravel()):
        if isinstance(p, h5py.Reference):
            assert bool(p) == bool(q) and (not p or a[p].name == b[q].name), path
        elif isinstance(p, np.void):
            assert p.tolist() == q.tolist(), path
        else:
            assert p == q, path


@pytest.mark.parametrize("version", ["1", "2", "3"])
def test_export_equals_the_native_twin(made, tmp_path, version):
    h5cow("export", f"{made}@{version}", tmp_path / "out.h5")
    with h5py.File(made.parent / f"twin{version}.h5") as twin, h5py.File(tmp_path / "out.h5") as out:
        same(twin, out)
        assert out["t"].fillvalue == -5 and out["refs"][0] and out[out["refs"][1]] == out["zebra"]
        assert "_versioned_data" not in out


def test_export_without_a_version_is_the_newest_and_can_be_changed(made, tmp_path):
    h5cow("export", made, tmp_path / "out.h5")
    with h5py.File(tmp_path / "out.h5", "a") as out:
        assert out["t"].shape == (230, 10)
        out["t"][0] = 99
    with h5py.File(made) as source:
        assert source["t"][0, 0] == 0


def test_export_keeps_the_user_block(tmp_path):
    """MATLAB knows its files by it, for instance."""
    path, out = tmp_path / "run.h5", tmp_path / "out.h5"
    code = "import h5py, sys; h5py.File(sys.argv[1], 'w', userblock_size=1024)['x'] = [7]"
    h5cow("run", "--", sys.executable, "-c", code, path)
    with open(path, "r+b") as f:
        f.write(b"MATLAB 7.3 MAT-file")
    for what in path, f"{path}@1":
        h5cow("export", "--force", what, out)
        assert out.read_bytes()[:1024] == path.read_bytes()[:1024] == b"MATLAB 7.3 MAT-file" + bytes(1005)
        with h5py.File(out, "r") as f:
            assert f.userblock_size == 1024 and f["x"][0] == 7


def test_export_refuses_to_overwrite_and_leaves_nothing_behind(made, tmp_path):
    target = tmp_path / "out.h5"
    target.write_text("mine")
    assert "--force" in h5cow("export", made, target, code=2)
    assert target.read_text() == "mine"
    h5cow("export", "--force", made, target)
    assert h5py.is_hdf5(target)
    assert "no version '99'" in h5cow("export", f"{made}@99", tmp_path / "new.h5", code=2)
    assert "the file itself" in h5cow("export", "-f", made, made, code=2)
    assert "cannot create" in h5cow("export", made, tmp_path / "no" / "where.h5", code=2)
    assert [p.name for p in tmp_path.iterdir()] == ["out.h5"]


def test_export_of_a_damaged_version_makes_no_file(copy, tmp_path):
    damage_chunk(copy, 33 // 2)
    told = h5cow("export", f"{copy}@1", tmp_path / "out.h5", code=2)
    assert "/t" in told and not list(tmp_path.glob("out*"))
    h5cow("export", f"{copy}@2", tmp_path / "out.h5")


def test_a_literal_file_with_an_at_sign_wins(made, tmp_path):
    odd = pathlib.Path(shutil.copy(made, tmp_path / "b@1"))
    h5cow("export", odd, tmp_path / "out.h5")
    with h5py.File(tmp_path / "out.h5") as out:
        assert out["t"].shape == (230, 10)


# ---- verify ---------------------------------------------------------------------------------------------------------


def pool_of(h, shape):
    raw = h["_versioned_data/raw"]
    return next(raw[name] for name in raw if raw[name].chunks == shape and raw[name].dtype == np.int32)


def flip(path, offset, bit=0):
    with open(path, "r+b") as f:
        f.seek(offset)
        byte = f.read(1)[0]
        f.seek(offset)
        f.write(bytes([byte ^ 1 << bit]))


def damage_chunk(path, slot):
    """Change one byte of a slot of the pool of /t."""
    with h5py.File(path) as h:
        raw = pool_of(h, (2, 10))
        info = next(raw.id.get_chunk_info(i) for i in range(raw.id.get_num_chunks())
                    if raw.id.get_chunk_info(i).chunk_offset[0] == 2 * slot)
    flip(path, info.byte_offset + info.size // 2, 3)


def verify(path, code=1):
    return json.loads(h5cow("verify", "--json", path, code=code) if code == 0 else
                      subprocess.run([H5COW, "verify", "--json", path], capture_output=True, text=True, env=ENV).stdout)


NAMED_TYPES = """
with h5py.File(FILE, 'w') as h:
    h['zz'] = np.dtype([('a', 'i4')])           # after its users in name order
    h.create_dataset('big', (2000,), h['zz'])
    h.create_dataset('tiny', data=np.array([(1,), (2,)], [('a', 'i4')]), dtype=h['zz'])
    for name in 'big', 'tiny':
        h5py.h5a.create(h[name].id, b'at', h['zz'].id, h5py.h5s.create(h5py.h5s.SCALAR))
with h5py.File(FILE, 'r+') as h:
    h['big'][5] = np.array([(3,)], [('a', 'i4')])
with h5py.File(FILE, 'r+') as h:
    h['zz'].attrs['unit'] = 'K'
with h5py.File(FILE, 'r+') as h:
    del h['zz']
    h['tiny'][0] = np.array([(7,)], [('a', 'i4')])
"""

WHAT_TYPES = """
import sys, h5py
for version in 1, 2, 3, 4:
    h = h5py.File(sys.argv[1] + ('' if sys.argv[2] == 'stock' else f'@{version}'), 'r')
    top = h[f'_versioned_data/versions/{version}'] if sys.argv[2] == 'stock' else h
    types = [top[name].id.get_type() for name in ('big', 'tiny')]
    types += [h5py.h5a.open(top[name].id, b'at').get_type() for name in ('big', 'tiny')]
    types += [top['zz'].id] if 'zz' in top else []
    places = {h5py.h5o.get_info(type).addr for type in types if type.committed()}
    print(version, all(type.committed() for type in types), len(places), types[-1].get_size(), top['tiny'][0][0])
"""


def test_datasets_of_a_named_type_have_that_type_in_every_version(tmp_path):
    path = tmp_path / "types.h5"
    program(path, NAMED_TYPES)
    h5cow("verify", path)
    expected = "1 True 1 4 1\n2 True 1 4 1\n3 True 1 4 1\n4 True 1 4 7\n"
    stock = subprocess.run([sys.executable, "-c", WHAT_TYPES, str(path), "stock"], capture_output=True, text=True, env=ENV)
    assert stock.stdout == expected, stock.stderr
    assert h5cow("run", "--", sys.executable, "-c", WHAT_TYPES, path, "connector") == expected


def test_a_version_tells_attributes_in_the_order_in_which_they_were_made(tmp_path):
    path = tmp_path / "order.h5"
    program(path, """
with h5py.File(FILE, 'w') as h:
    h['x'] = np.arange(5000.)
    for name in 'b10', 'b3', 'a':
        h['x'].attrs[name] = 1
""")
    code = (
        "import sys, h5py; h = h5py.File(sys.argv[1], 'r'); d = h[sys.argv[2]].id;"
        "print([h5py.h5a.open(d, index=i, index_type=h5py.h5.INDEX_CRT_ORDER, order=h5py.h5.ITER_INC).name.decode()"
        " for i in range(3)])"
    )
    expected = "['b10', 'b3', 'a']\n"
    for name in "x", "_versioned_data/versions/1/x":
        stock = subprocess.run([sys.executable, "-c", code, str(path), name], capture_output=True, text=True, env=ENV)
        assert stock.stdout == expected, stock.stderr
    assert h5cow("run", "--", sys.executable, "-c", code, f"{path}@1", "x") == expected


def test_an_absolute_soft_link_leads_into_the_version_that_is_read(tmp_path):
    path = tmp_path / "soft.h5"
    program(path, """
with h5py.File(FILE, 'w') as h:
    h['x'] = np.zeros(5000)
    h['far/off/link'] = h5py.SoftLink('/x')
    h['far/y'] = np.zeros(5000)
with h5py.File(FILE, 'r+') as h:
    h['x'][0] = 1
with h5py.File(FILE, 'r+') as h:
    del h['far/off/link']
with h5py.File(FILE, 'r+') as h:
    h['x'][0] = 2
""")
    h5cow("verify", path)
    with h5py.File(path, "r") as h:
        versions = h["_versioned_data/versions"]
        assert [versions[f"{v}/far/off/link"][0] for v in (1, 2)] == [0, 1]
        assert "link" not in versions["3/far/off"]
        assert versions["3/far/off"] == versions["4/far/off"]  # no longer made anew
        assert versions["1/far/y"] == versions["4/far/y"]
    code = "import sys, h5py; h = h5py.File(sys.argv[1], 'r'); g = h['far/off']; print(g['link'][0], g.get('link', getlink=True).path)"
    assert h5cow("run", "--", sys.executable, "-c", code, f"{path}@2") == "1.0 /x\n"


DELETED_AFTER_A_FLUSH = """
with h5py.File(FILE, 'w') as h:
    h['keep/x'] = np.arange(5000.)
with h5py.File(FILE, 'a') as h:
    h['temporary/deep/x'] = np.arange(5000.)
    h['temporary/tiny'] = 1
    h['named'] = np.dtype([('a', 'i4')])
    h.create_dataset('table', shape=(2000,), dtype=h['named'])
    h['keep/x'][0] = -1
    h.flush()
    if DELETE:
        del h['temporary'], h['named'], h['keep/x']
    h['keep/y'] = np.arange(6000.)
"""


def test_what_was_deleted_between_a_flush_and_the_close_leaves_a_whole_file(tmp_path):
    path = tmp_path / "flushed.h5"
    program(path, DELETED_AFTER_A_FLUSH.replace("DELETE", "True"))
    assert "2 versions" in h5cow("verify", path)
    with h5py.File(path, "r") as h:
        v = h["_versioned_data/versions/2"]
        assert sorted(v) == ["keep", "table"] and sorted(v["keep"]) == ["y"]
        assert v["table"].shape == (2000,)
        rows = h["_versioned_data/snapshots"][:]
        assert (rows["snapshot"] == 2**64 - 1).any()
        assert "x" in h["_versioned_data/versions/1/keep"]
    # and the deleted ones can come back in a later version
    program(path, "with h5py.File(FILE, 'a') as h: h['keep/x'] = np.ones(5000)")
    h5cow("verify", path)


def test_a_flush_without_deletions_strikes_no_snapshot_out(tmp_path):
    path = tmp_path / "flushed.h5"
    program(path, DELETED_AFTER_A_FLUSH.replace("DELETE", "False"))
    h5cow("verify", path)
    with h5py.File(path, "r") as h:
        assert not (h["_versioned_data/snapshots"]["snapshot"] == 2**64 - 1).any()


COUNTED = """
import ctypes, re, sys, h5py
h5py.h5.get_libversion()
path = next(line.split()[-1] for line in open('/proc/self/maps') if re.search(r'/libhdf5(_serial)?[.]so', line))
with h5py.File(FILE, 'w') as h:
    d = h.create_dataset('d', data=np.arange(N))
    h.flush()
    del h['d']
    ctypes.CDLL(path).H5Oincr_refcount(ctypes.c_int64(d.id.id))
    h.flush()
    d[0] = 7
"""


@pytest.mark.parametrize("elements", [3, 3000])
def test_what_is_written_after_its_last_link_went_is_no_damage(tmp_path, elements):
    path = tmp_path / "counted.h5"
    program(path, COUNTED.replace("N)", f"{elements})"))
    assert "no damage" in h5cow("verify", path)


def test_verify_finds_no_damage_in_a_good_file(made):
    before = made.read_bytes()
    told = verify(made, code=0)
    assert not told["damaged"] and told["checked"]["versions"] == 3 and told["checked"]["chunks"] > 100
    assert "no damage" in h5cow("verify", made)
    assert made.read_bytes() == before


def test_verify_names_chunk_versions_and_the_older_version(copy):
    with h5py.File(copy) as h:
        raw, slots = pool_of(h, (2, 10)), 100
        new = next(k for k in range(slots, raw.shape[0] // 2) if (raw[2 * k + 1] == -1).all())
    damage_chunk(copy, new)
    told = verify(copy)
    assert len(told["damage"]) == 1
    damage = told["damage"][0]
    assert damage["slot"] == new and damage["chunk"] == [16, 0] and "/t" in damage["objects"]
    assert damage["versions"] == ["3", "2"] and damage["head"] and damage["older_version_with_data"] == "1"
    text = h5cow("verify", copy, code=1)
    assert "chunk (16, 0) of" in text and "h5cow export" in text and "@1" in text


def test_verify_finds_every_damaged_chunk(copy):
    damaged = random.Random(seed()).sample(range(100), 10)
    for slot in damaged:
        damage_chunk(copy, slot)
    assert sorted(d["slot"] for d in verify(copy)["damage"]) == sorted(damaged)


def test_verify_finds_a_damaged_row_of_the_slot_table(copy):
    with h5py.File(copy, "r+") as h:
        pool = pool_of(h, (2, 10)).name.split("/")[-1]
        slots = h["_versioned_data/slots"][pool]
        row = slots[5]
        row["hash"][0] ^= 1
        slots[5] = row
    assert [d["slot"] for d in verify(copy)["damage"]] == [5]


def test_verify_finds_damage_in_the_index(copy):
    with h5py.File(copy, "r+") as h:
        index = h["_versioned_data/index"]
        position = index.shape[0] // 2
        index[position] ^= 4
    told = verify(copy)
    assert any("index" in d["what"] or "root record" in d["what"] for d in told["damage"]), told


def views_with_mappings(h):
    views = h["_versioned_data/views"]
    return [name for name in views if views[name].is_virtual and views[name].virtual_sources()]


def test_verify_finds_a_view_that_shows_something_else(copy):
    with h5py.File(copy, "r+") as h:
        views = h["_versioned_data/views"]
        name = next(n for n in views_with_mappings(h) if "/raw/" in views[n].virtual_sources()[0].dset_name
                    and views[n].dtype == np.int32)
        old, shape = views[name], views[name].shape
        dcpl = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        for m in old.virtual_sources():
            low, high = m.src_space.get_select_bounds()
            source = h5py.h5s.create_simple((10**6, 10))
            source.select_hyperslab((low[0] + 2, 0), tuple(u - l + 1 for l, u in zip(low, high)))
            dcpl.set_virtual(m.vspace, b".", m.dset_name.encode(), source)
        del views[name]
        h5py.h5d.create(views.id, name.encode(), h5py.h5t.py_create(np.dtype("i4")),
                        h5py.h5s.create_simple(shape), dcpl)
    told = verify(copy)
    assert [d["only_without_h5cow"] for d in told["damage"]] == [True]
    assert name in told["damage"][0]["what"] and "wrong elements" in told["damage"][0]["what"]
    assert told["damage"][0]["objects"]


def test_verify_finds_a_missing_view(copy):
    with h5py.File(copy, "r+") as h:
        name = views_with_mappings(h)[0]
        del h["_versioned_data/views"][name]
    assert any(name in d["what"] for d in verify(copy)["damage"])


def test_verify_finds_a_head_that_is_behind(tmp_path, monkeypatch):
    """One that is virtual, as in files with addresses of 4 bytes; of others: test_native_heads.py."""
    monkeypatch.setitem(ENV, "H5COW_HEADS", "virtual")
    copy = tmp_path / "a.h5"
    for text in (FIRST, THIRD):
        program(copy, text)
    with h5py.File(copy, "r+") as h:
        group = h["_versioned_data"]
        number = h["t"].virtual_sources()[0].dset_name.split("/")[-1]
        current = h5py.h5o.get_info(group["heads"][number].id).addr
        other = next(n for n in group["views"] if group["views"][n].shape == (200, 10))
        assert h5py.h5o.get_info(group["views"][other].id).addr != current
        del group["heads"][number]
        group["heads"][number] = group["views"][other]
    assert any(f"heads/{number} is not the view" in d["what"] for d in verify(copy)["damage"])


def test_verify_finds_versions_and_log_that_disagree(copy):
    with h5py.File(copy, "r+") as h:
        h["_versioned_data/versions"].move("2", "stranger")
    what = " ".join(d["what"] for d in verify(copy)["damage"])
    assert "'stranger' is not in the log" in what and "'/_versioned_data/versions/2' cannot be read" in what


def test_verify_finds_a_snapshot_with_another_extent(copy):
    with h5py.File(copy, "r+") as h:
        h["_versioned_data/versions/1/t"].id.set_extent((190, 10))
    assert any("another extent" in d["what"] for d in verify(copy)["damage"])


def test_verify_of_a_truncated_file_is_damage(copy):
    os.truncate(copy, copy.stat().st_size // 2)
    told = verify(copy)
    assert told["damaged"] and "cannot open" in told["damage"][0]["what"]


def test_the_document_has_every_name_of_json(made, copy, tmp_path):
    content = bytearray(made.read_bytes())
    at = content.find(np.arange(40000.0, 40100.0).tobytes())
    content[at : at + 8] = b"damaged!"
    copy.write_bytes(content)
    text = (pathlib.Path(__file__).parent.parent / "docs/command.md").read_text()
    known = set(re.findall(r"`(\w+)`", text))

    def names(value):
        if isinstance(value, dict):
            return set(value).union(*map(names, value.values()))
        return set().union(*map(names, value)) if isinstance(value, list) else set()

    for words, code in [(["log", made], 0), (["stat", made], 0), (["verify", copy], 1), (["recover", made], 0),
                        (["recover", copy, tmp_path / "out.h5"], 1), (["doctor", made], 0),
                        (["doctor", made, "--program", H5COW, "run", "-q", "--", "h5ls", made], 0)]:
        said = subprocess.run([H5COW, words[0], "--json", *words[1:]], env=ENV, capture_output=True, text=True)
        assert said.returncode == code, said.stderr
        assert names(json.loads(said.stdout)) - known == set(), words


def test_verify_never_crashes_on_flipped_bits(made, tmp_path):
    data = made.read_bytes()
    path = tmp_path / "flipped.h5"
    chance = random.Random(seed())
    codes = []
    for _ in range(150):
        place = chance.randrange(len(data))
        path.write_bytes(data[:place] + bytes([data[place] ^ 1 << chance.randrange(8)]) + data[place + 1:])
        done = subprocess.run([H5COW, "verify", path], capture_output=True, text=True, env=ENV, timeout=WAITING)
        assert done.returncode in (0, 1, 2), (place, done.returncode, done.stderr)
        codes.append(done.returncode)
    assert codes.count(1) > 20


@pytest.mark.skipif(shutil.which("strace") is None, reason="no strace here")
@pytest.mark.parametrize("number", ["SIGXCPU", "SIGHUP", "SIGUSR1"])
def test_a_check_that_a_signal_ends_finds_no_damage(made, number):
    """Nor that a limit ends: only how libhdf5 crashes is damage."""
    done = subprocess.run(["strace", "-f", "-o", "/dev/null", "-e", f"inject=pread64:signal={number}:when=20", H5COW,
                           "verify", made], env=ENV, capture_output=True, text=True, timeout=WAITING,
                          preexec_fn=lambda: signal.signal(getattr(signal, number), signal.SIG_DFL))  # nohup ignores SIGHUP
    assert done.returncode == 2 and "damage" not in done.stdout, done.stdout + done.stderr
    assert "ended by a signal" in done.stderr, done.stderr


def keys_of(value):
    found = set(value) if isinstance(value, dict) else set()
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        found |= keys_of(inner)
    return found


# Verb and words, and verbs whose section has the rest of its keys.
@pytest.mark.parametrize("words, others", [
    (["log", "FILE"], []), (["log", "--operations", "FILE"], []), (["ls", "FILE"], []), (["diff", "FILE@1"], []),
    (["show", "FILE"], ["log", "diff"]), (["hash", "-l", "FILE"], []), (["stat", "FILE"], []), (["tag", "FILE"], []),
    (["forget", "-n", "FILE", "1"], []), (["squash", "-n", "FILE", "1..3"], ["forget"]), (["gc", "-n", "FILE"], []),
    (["restore", "-n", "FILE@1"], []), (["undo", "FILE"], ["restore"]), (["redo", "FILE"], ["restore"]), (["verify", "FILE"], []),
    (["recover", "FILE"], ["verify"]), (["recover", "-n", "FILE"], ["verify"]), (["recover", "FILE", "OUT"], []),
])
def test_every_key_of_json_is_documented(copy, tmp_path, words, others):
    page = (TEST.parent / "docs/command.md").read_text()
    told = "".join(page.split(f"\n## {verb}\n")[1].split("\n## ")[0] for verb in [words[0], *others])
    if words[0] in ("tag", "log"):
        h5cow("tag", f"{copy}@2", "named")
    if words[0] == "redo":
        h5cow("undo", copy)
    words = [word.replace("FILE", str(copy)).replace("OUT", str(tmp_path / "out.h5")) for word in words]
    answer = json.loads(h5cow(words[0], "--json", *words[1:], code=words[0] == "diff"))
    assert {key for key in keys_of(answer) if f"`{key}`" not in told} == set() and keys_of(answer)
    if words[0] == "recover" and len(words) == 2 + ("-n" in words):
        assert answer["left_pending"] == 0


@pytest.mark.parametrize("words", [
    ["stat", "FILE@nix"], ["ls", "FILE@nix"], ["hash", "FILE@nix"], ["show", "FILE@nix"], ["diff", "OTHER", "FILE@nix"],
    ["export", "FILE@nix", "out.h5"], ["tag", "FILE@nix", "t"], ["rename", "FILE@nix", "n"], ["restore", "FILE@nix"],
    ["forget", "FILE", "nix"], ["verify", "--since=nix", "FILE"], ["cp", "FILE@nix:/x", "OTHER:/y"],
])
def test_who_names_no_version_is_told_of_which_file(copy, tmp_path, words):
    other = shutil.copy(copy, tmp_path / "other.h5")
    told = h5cow(*(word.replace("FILE", str(copy)).replace("OTHER", str(other)) for word in words), code=2)
    assert told.startswith("h5cow: ") and f"{copy}: there is no version 'nix'" in told, told


def test_what_verify_prints_is_no_command_to_a_terminal(tmp_path):
    program(tmp_path / "a.h5", "with h5py.File(FILE, 'w') as h: h['red\\x1b[31m\\nline'] = np.arange(100000)")
    content = bytearray((tmp_path / "a.h5").read_bytes())
    at = content.find(np.arange(20000, 20100, dtype="i8").tobytes())
    content[at : at + 8] = b"damaged!"
    (tmp_path / "a.h5").write_bytes(content)
    said = h5cow("verify", "-v", tmp_path / "a.h5", code=1)
    assert "/red\\x1b[31m line" in said and "\x1b" not in said, said
    assert "/red\\u001b[31m\\nline" in h5cow("verify", "--json", tmp_path / "a.h5", code=1)


def test_verify_survives_a_damaged_heap(copy):
    """Strings of the tables are in such heaps, which have no checksum; sizes in them can send libhdf5 round in circles."""
    data = bytearray(copy.read_bytes())
    heap = data.index(b"GCOL")
    data[heap + 16 + 8 : heap + 16 + 16] = bytes(8)
    data[heap + 16 : heap + 18] = (1).to_bytes(2, "little")
    copy.write_bytes(data)
    done = subprocess.run([H5COW, "verify", copy], capture_output=True, text=True, env=ENV, timeout=WAITING)
    assert done.returncode == 1, done.stdout + done.stderr
