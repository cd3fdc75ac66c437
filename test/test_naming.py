"""h5cow tag, rename, describe: what versions are called, everywhere where they can be named, and a record of it."""

import json
import os
import subprocess

import h5py
import pytest
from conftest import H5COW, h5cow
from hostile import fence_off, fence_on

STORY = """
with h5py.File(sys.argv[1], 'a', track_order=TRACKED) as f:
    n = int(sys.argv[2])
    if n == 1:
        f.create_group('g', track_order=TRACKED)
        f['x'] = np.arange(3000)
        f['top'] = h5py.SoftLink('/g/y')
        for name, target in (('b', None), ('y', None), ('absolute', '/x'), ('a', None), ('far', '/g/y'), ('relative', 'y')):
            f['g/' + name] = h5py.SoftLink(target) if target else np.arange(5)
        f['g/outside'] = h5py.ExternalLink('other.h5', '/z')
        f['g/last'] = f['x']
        f['again'] = f.create_group('quiet/er')
    else:
        f['x'][n] = -n
"""


@pytest.fixture(params=[True, False])
def tracked(request):
    return request.param


@pytest.fixture
def story(programs, tmp_path, tracked):
    path = tmp_path / "a.h5"
    for n in (1, 2, 3):
        done = programs.python(STORY.replace("TRACKED", str(tracked)), path, n, options=f"message=step%20{n}" if n > 1 else "")
        assert done.returncode == 0, done.stderr
    return path


def log(path):
    return {row["name"]: row for row in json.loads(h5cow("log", "--json", path))}


def operations(path):
    return [row["what"] for row in json.loads(h5cow("log", "--operations", "--json", path))][::-1]


@pytest.mark.parametrize("more", [0, 3, 9])
def test_no_version_gets_the_name_of_a_tag(programs, story, more):
    for name in ["paper", *(f"t{n}" for n in range(more))]:
        h5cow("tag", f"{story}@1", name)
    before = log(story)
    done = programs.python(STORY.replace("TRACKED", "False"), story, 4, options="name=paper")
    assert done.returncode != 0 and "there is a tag 'paper' already" in done.stderr, done.stderr
    assert "paper" in h5cow("rename", f"{story}@2", "paper", code=2)
    assert log(story) == before
    done = programs.python(STORY.replace("TRACKED", "False"), story, 4, options="name=pape")
    assert done.returncode == 0, done.stderr
    assert set(log(story)) - set(before) == {"pape"} and log(story)["1"]["tags"] == before["1"]["tags"]


def test_tags_name_versions(programs, story):
    assert h5cow("tag", "--json", story) == "[]\n" and operations(story) == []
    h5cow("tag", f"{story}@2", "paper")
    h5cow("tag", f"{story}@latest", "final")
    h5cow("tag", f"{story}@#2", "submitted")
    assert [(t["tag"], t["version"], t["number"]) for t in json.loads(h5cow("tag", "--json", story))] == [
        ("final", "3", 3), ("paper", "2", 2), ("submitted", "2", 2)]
    assert [line.split()[:3] for line in h5cow("tag", story).splitlines()[1:]] == [
        ["final", "3", "3"], ["paper", "2", "2"], ["submitted", "2", "2"]]
    assert {name: row["tags"] for name, row in log(story).items()} == {"1": [], "2": ["paper", "submitted"], "3": ["final"]}
    assert "2 (paper, submitted)" in h5cow("log", story) and "3 (final)" in h5cow("log", "--oneline", story)
    assert h5cow("diff", f"{story}@paper", f"{story}@2") == "" and len(log(story)) == 3
    done = programs.python("with h5py.File(sys.argv[1] + '@paper') as f: print(f['x'][2])", story)
    assert done.stdout == "-2\n", done.stderr
    done = programs.stock("h5dump", "-d", "/_versioned_data/tags/paper/x[2]", story)
    assert "(2): -2" in done.stdout
    assert "there is a tag 'paper' already" in h5cow("tag", f"{story}@3", "paper", code=2)
    h5cow("tag", "-f", f"{story}@3", "paper")
    assert log(story)["3"]["tags"] == ["final", "paper"]
    h5cow("tag", "-d", story, "final")
    assert log(story)["3"]["tags"] == ["paper"] and log(story)["2"]["tags"] == ["submitted"]
    assert operations(story) == ["tag paper: version 2", "tag final: version 3", "tag submitted: version 2",
                                 "tag paper: version 3", "tag final removed: version 3"]
    assert "tag final removed" in h5cow("log", "--operations", story).splitlines()[1]
    programs.verified(story)


def test_head_and_latest(programs, story):
    for word in ("head", "latest"):
        assert h5cow("diff", f"{story}@{word}", f"{story}@3") == ""
    done = programs.python("f = h5py.File(sys.argv[1], 'a'); f['x'][0] = 4; f.close()", story, options="name=latest")
    assert done.returncode == 0, done.stderr
    done = programs.python("f = h5py.File(sys.argv[1], 'a'); f['x'][0] = 5; f.close()", story)
    assert h5cow("diff", f"{story}@latest", f"{story}@#4") == "" and h5cow("diff", f"{story}@head", f"{story}@5") == ""


def test_a_program_that_opens_the_file_again_goes_on(programs, tmp_path):
    path = tmp_path / "again.h5"
    program = "for i in range(3):\n    f = h5py.File(sys.argv[1], 'a'); f[str(len(f))] = i; f.close()"
    done = programs.python(program, path, options="name=run")
    assert done.returncode == 0, done.stderr
    assert [row["name"] for row in json.loads(h5cow("log", "--json", path))] == ["run.3", "run.2", "run"]
    done = programs.python(program, path, options="name=run", errors=False)
    assert done.returncode == 1 and "there is a version 'run' already; choose another name" in done.stderr
    assert len(json.loads(h5cow("log", "--json", path))) == 3


def links(path, version):
    """Of HDF5 alone: each soft link, and the order of all."""
    with h5py.File(path) as f:
        root, told = f[f"_versioned_data/versions/{version}"], []
        for group in (root, root["g"]):
            for name in group:
                link = group.get(name, getlink=True)
                told.append((name, getattr(link, "path", None)))
        assert root["top"][0] == 0 and root["g/absolute"].shape == (3000,) and root["g/far"] == root["g/y"]
        return told


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_version_gets_another_name(programs, story, number, tracked):
    before, old = links(story, number), h5cow("diff", f"{story}@1", f"{story}@2", code=1)
    hashed = h5cow("hash", f"{story}@{number}")
    h5cow("tag", f"{story}@{number}", "mark")
    h5cow("rename", f"{story}@{number}", "first light")
    rows = json.loads(h5cow("log", "--json", story))[::-1]
    assert rows[number - 1]["name"] == "first light" and rows[number - 1]["tags"] == ["mark"]
    assert [row["parent"] for row in rows][1:] == [row["name"] for row in rows][:2]
    assert links(story, "first light") == [
        (name, path.replace(f"versions/{number}", "versions/first light") if path else None) for name, path in before]
    assert h5cow("hash", f"{story}@first light").split()[0] == hashed.split()[0] == h5cow("hash", f"{story}@mark").split()[0]
    # nobody is called by its number now, so that is the number still
    assert h5cow("show", f"{story}@{number}") == h5cow("show", f"{story}@first light") == h5cow("show", f"{story}@#{number}")
    assert h5cow("diff", f"{story}@#1", f"{story}@#2", code=1) == old.replace("@1", "@#1").replace("@2", "@#2")
    for other in {1, 2, 3} - {number}:
        assert len(links(story, other)) == len(before)
    programs.verified(story)
    done = programs.python("""
with h5py.File(sys.argv[1] + '@first light') as f: print(f['g/far'][3], f['g'].get('far', getlink=True).path, list(f['g']))
with h5py.File(sys.argv[1], 'a') as f: f['x'][9] = 90; f['g/absolute'][10] = 10
""", story)
    names = ["b", "y", "absolute", "a", "far", "relative", "outside", "last"]
    assert done.stdout == f"3 /g/y {names if tracked else sorted(names)}\n", done.stdout + done.stderr
    assert operations(story)[-1] == f"version {number} renamed: first light"
    h5cow("restore", f"{story}@first light")
    assert h5cow("diff", f"{story}@mark", story) == ""
    programs.verified(story)
    assert operations(story)[-1] == "version #5: restored, all as in version first light"


def test_a_version_gets_another_message(programs, story):
    h5cow("describe", f"{story}@2", "after calibration\nby the new table")
    assert log(story)["2"]["message"] == "after calibration\nby the new table" and log(story)["3"]["message"] == "step 3"
    assert operations(story) == ["version 2 described anew; it was: step 2"]
    h5cow("describe", f"{story}@2", "")
    assert log(story)["2"]["message"] == ""
    programs.verified(story)


@pytest.mark.parametrize("words, sentence", [
    (["tag", "FILE@1"], "the whole file has tags: FILE, without '@1'"),
    (["tag", "FILE", "x"], "which version? FILE@REV"),
    (["tag"], "it wants FILE, or FILE@REV and a NAME"),
    (["tag", "FILE@1", "a", "b"], "it wants FILE, or FILE@REV and a NAME"),
    (["tag", "-d", "FILE"], "it wants FILE and the NAME of a tag"),
    (["tag", "-d", "FILE", "none"], "there is no tag 'none'"),
    (["tag", "FILE@9", "x"], "there is no version '9'"),
    (["tag", "FILE@1", "3"], "numbers are the names of versions to come"),
    (["tag", "FILE@1", "17"], "numbers are the names of versions to come"),
    (["tag", "FILE@1", "latest"], "means something already"),
    (["tag", "FILE@1", "a/b"], "allowed is 1 to 64 bytes"),
    (["tag", "FILE@1", ""], "allowed is 1 to 64 bytes"),
    (["tag", "FILE@1", "../log"], "allowed is 1 to 64 bytes"),
    (["rename", "FILE@1", "~1"], "allowed is 1 to 64 bytes"),
    (["rename", "FILE@1", "2"], "numbers are the names of versions to come"),
    (["rename", "FILE@1", "named"], "there is a tag 'named' already"),
    (["rename", "FILE@1"], "it wants FILE@REV and a NAME"),
    (["rename", "FILE", "x"], "which version? FILE@REV"),
    (["describe", "FILE@1"], "it wants FILE@REV and a MESSAGE"),
    (["describe", "-x", "FILE@1", "y"], "-x"),
])
def test_what_is_refused_changes_nothing(programs, story, sha256, words, sentence):
    h5cow("tag", f"{story}@2", "named")
    before = sha256(story)
    told = h5cow(*[word.replace("FILE", str(story)) for word in words], code=2)
    assert sentence in told and sha256(story) == before, told


def test_a_version_is_not_called_as_a_tag_is(programs, story):
    h5cow("tag", f"{story}@2", "named")
    done = programs.python("f = h5py.File(sys.argv[1], 'a')", story, options="name=named")
    assert done.returncode != 0 and "there is a tag 'named' already" in done.stderr
    assert len(log(story)) == 3


def test_plain_files_and_writers(programs, story, tmp_path):
    plain = tmp_path / "plain.h5"
    h5py.File(plain, "w").close()
    for words in (["tag", plain], ["tag", f"{plain}@1", "x"], ["rename", f"{plain}@1", "x"], ["describe", f"{plain}@1", "x"]):
        assert "no history" in h5cow(*words, code=2)
    done = programs.python("""
import os, subprocess
with h5py.File(sys.argv[1], 'r+') as f:
    f['x'][0] = 3
    env = {k: v for k, v in os.environ.items() if not k.startswith('HDF5_')}
    for words in (['tag', sys.argv[1] + '@1', 'x'], ['rename', sys.argv[1] + '@1', 'x'], ['describe', sys.argv[1] + '@1', 'x']):
        done = subprocess.run([sys.argv[2], *words], env=env, capture_output=True, text=True)
        print(done.returncode)
""", story, H5COW)
    assert done.stdout == "2\n2\n2\n", done.stdout + done.stderr
    assert operations(story) == []


def test_readers_of_a_version_that_is_renamed_go_on(programs, story):
    reader = subprocess.Popen(["python3", "-c", programs.code("""
with h5py.File(sys.argv[1] + '@2') as f:
    print('open', flush=True)
    input()
    print(f['x'][2], f['g/far'][3], flush=True)
""", errors=False), str(story)], env={**os.environ, "HDF5_VOL_CONNECTOR": "h5cow"}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert reader.stdout.readline() == "open\n"
    h5cow("rename", f"{story}@2", "other")
    assert reader.communicate("\n")[0] == "-2 3\n" and reader.returncode == 0
    programs.verified(story)


@pytest.mark.parametrize("harm", ["a dataset", "a link to nothing", "another file"])
def test_damaged_tags_keep_nobody_from_writing(programs, story, tmp_path, harm):
    h5cow("tag", f"{story}@1", "mark")
    with h5py.File(tmp_path / "other.h5", "w") as f:
        f.create_group("t")["4"] = 1
    fence = fence_off(story)
    with h5py.File(story, "r+", libver=("v110", "latest")) as f:
        group = f["_versioned_data"]
        del group["tags"]
        group["tags"] = {"a dataset": 5, "a link to nothing": h5py.SoftLink("/nowhere"),
                         "another file": h5py.ExternalLink("other.h5", "/t")}[harm]
    fence_on(story, fence)
    for options in ("", "name=called"):
        done = programs.python("f = h5py.File(sys.argv[1], 'a'); f['x'][7] += 5; f.close()", story, options=options)
        assert done.returncode == 0 and done.stderr == "", done.stderr
    assert list(log(story)) == ["called", "4", "3", "2", "1"]
    assert "no tags are shown" in subprocess.run([H5COW, "log", story], capture_output=True, text=True).stderr
    for words in (["tag", story], ["tag", f"{story}@1", "more"], ["tag", "-d", story, "mark"], ["rename", f"{story}@2", "more"]):
        h5cow(*words, code=2)
    assert "tags" in h5cow("verify", story, code=1)


def test_its_own_number_is_a_name_again(programs, story):
    h5cow("rename", f"{story}@2", "two")
    assert "numbers are the names" in h5cow("rename", f"{story}@two", "3", code=2)
    h5cow("rename", f"{story}@two", "2")
    assert list(log(story)) == ["3", "2", "1"]
    programs.verified(story)
