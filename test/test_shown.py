"""What the command shows of texts in a file: all of them where a program reads it, nothing that a terminal would obey, and names and
numbers of versions that can be used as they are shown."""

import json
import re
import unicodedata

import h5py
import numpy as np
import pytest
from conftest import H5COW, STOCK, h5cow
from terminal import all_on_a_terminal

LONG = "".join(f"{n:05d} " for n in range(400)) + "é" * 300
BIDI = "\u202eodd\u2066name\u200b\x9b31m"
# every character that is no graphic one and no blank, as Python's own tables have it
UNSEEN = {chr(c) for c in range(1, 0x110000) if unicodedata.category(chr(c)) in ("Cc", "Cf", "Zl", "Zp")} - {"\n"}


def on_a_terminal(*words):
    said, code = all_on_a_terminal(H5COW, *map(str, words), env={**STOCK, "H5COW_PAGER": ""},
                                  streams=("stdin", "stdout"))
    return said.decode().replace("\r\n", "\n")


@pytest.fixture
def texts(programs, tmp_path):
    path = tmp_path / "a.h5"
    code = """
with h5py.File(sys.argv[1], 'a') as f:
    k = len(f.attrs)
    f.attrs['text'] = sys.argv[2] + str(k)
    f.attrs['many'] = np.arange(300) + 7 * k
    f.attrs['extra%d' % k] = 1
    f.require_dataset('s', (2,), h5py.string_dtype())[0] = sys.argv[2] * (k + 1)
    f.require_dataset('e', (2,), h5py.enum_dtype({'n' * 400: 0, 'm' * 500: 1}, 'i1'))[1] = k > 0
"""
    for _ in range(2):
        done = programs.python(code, path, LONG)
        assert done.returncode == 0, done.stderr
    return path


def test_values_are_told_in_full(texts):
    """To programs; who looks at a terminal sees where they differ."""
    (told,) = (o for o in json.loads(h5cow("diff", "--json", f"{texts}@1", texts, code=1))["objects"] if o["path"] == "/")
    found = {a["name"]: (a.get("before"), a.get("after")) for a in told["attributes"]}
    assert found["text"] == (f'"{LONG}0"', f'"{LONG}3"')
    assert found["many"] == tuple(str([int(n) for n in np.arange(300) + 7 * k]) for k in (0, 3))
    plain = h5cow("diff", "-n1", f"{texts}@1", texts, code=1)
    assert f'"{LONG}0" -> "{LONG}3"' in plain and f'"{LONG}" -> "{LONG * 4}"' in plain and f'{"n" * 400} -> {"m" * 500}' in plain
    (line,) = (x for x in on_a_terminal("diff", f"{texts}@1", texts).splitlines() if "attribute 'text'" in x)
    assert len(line) < 500 and "0\" -> \"" not in line
    before, after = re.search(r": (.*) -> (.*)", line).groups()
    assert before.startswith("…") and before.endswith('é0"') and after.endswith('é3"')


def test_lines_of_the_log_are_told_in_full(programs, tmp_path):
    path = tmp_path / "a.h5"
    words = [f"word{n}" for n in range(30)]
    assert programs.python("with h5py.File(sys.argv[1], 'w') as f: f['x'] = 1", path, *words).returncode == 0
    assert words[-1] in h5cow("log", path) and words[-1] not in on_a_terminal("log", path)


def test_each_row_of_forget_says_what_it_frees(programs, tmp_path):
    """A chunk of several versions that go is told once, so the column adds up."""
    path = tmp_path / "a.h5"
    make = """
with h5py.File(sys.argv[1], 'a') as f:
    f.require_dataset('x', (500000,), 'f8', chunks=(50000,))[:int(sys.argv[2])] = np.random.random()
"""
    for count in (500000, 50000, 500000, 50000, 500000, 1):
        assert programs.python(make, path, count).returncode == 0
    told = json.loads(h5cow("forget", "-n", "--json", path, "1..3"))
    assert sum(v["frees"] for v in told["versions"]) == told["frees"] > 0
    told = json.loads(h5cow("forget", "-n", "--json", "--keep-last=1", path))
    frees = {v["name"]: v["frees"] for v in told["versions"]}
    assert sum(frees.values()) == told["frees"] > 0 and frees["6"] == 0
    rows = {line.split()[0]: line for line in h5cow("forget", "-n", "--keep-last=1", path).splitlines()}
    # by what `gc` frees when they go one after the other, the oldest first
    for version in range(1, 5):
        h5cow("forget", path, version)
        assert json.loads(h5cow("gc", "--json", path))["bytes"] == frees[str(version)], (version, rows)


def test_a_number_that_is_nobodys_name_is_the_number(programs, tmp_path):
    path = tmp_path / "a.h5"
    write = "with h5py.File(sys.argv[1], 'a') as f: f.attrs['k'] = f.attrs.get('k', 0) + 1"
    for options in ("", "", "name=2", ""):
        assert programs.python(write, path, options=options).returncode == 0
        if options == "" and h5cow("log", "--json", path).count('"number"') == 2:
            h5cow("rename", f"{path}@2", "two")
    names = [v["name"] for v in json.loads(h5cow("log", "--json", path))]
    assert names == ["4", "2", "two", "1"]
    number = lambda revision: json.loads(h5cow("show", "--json", f"{path}@{revision}"))["number"]  # noqa: E731
    assert [number(r) for r in ("two", "2", "3", "#2", "4", "1")] == [2, 3, 3, 2, 4, 1]
    read = "with h5py.File(sys.argv[1], 'r') as f: print(f.attrs['k'])"
    assert programs.python(read, path, options="at=3").stdout == "3\n"
    for word in ("5", "0", "03x", "-1"):
        assert f"there is no version '{word}'" in h5cow("show", f"{path}@{word}", code=2)
    h5cow("forget", path, "3")
    assert "forgotten" in h5cow("show", f"{path}@3", code=2)


def test_nothing_that_a_terminal_obeys_is_shown(programs, tmp_path):
    path = tmp_path / "a.h5"
    make = """
with h5py.File(sys.argv[1], 'a') as f:
    odd = sys.argv[2]
    k = len(f)
    f[odd + str(k)] = np.arange(3000)
    f.attrs[odd] = odd + str(k)
    f.require_group('g' + odd).attrs['x'] = k
    f.require_dataset('t', (1,), h5py.string_dtype())[0] = odd * (k + 1)
"""
    for message in ("one", f"two {BIDI}"):
        done = programs.python(make, path, BIDI, options="message=" + message.replace(";", "%3B"))
        assert done.returncode == 0, done.stderr
    h5cow("tag", f"{path}@2", "tag\u202e")
    h5cow("rename", f"{path}@1", "na\u2067me")
    every = [("log",), ("log", "--oneline"), ("log", "--operations"), ("ls", "-r"), ("show", "-n3"), ("hash", "-l"), ("stat",), ("tag",),
             ("doctor",), ("verify",), ("forget", "-n", "--keep-last=1"), ("log", "--json"), ("ls", "--json"), ("show", "--json")]
    for verb in every:
        for said in (h5cow(*verb, path), on_a_terminal(*verb, path)):
            assert not UNSEEN & set(said), (verb, sorted(UNSEEN & set(said)))
        if verb[0] not in ("doctor", "verify", "stat", "forget"):
            assert "\\u202e" in said.lower(), (verb, said)
    assert json.loads(h5cow("log", "--json", path))[0]["message"] == f"two {BIDI}"
    assert not UNSEEN & set(h5cow("ls", path, f"/no{BIDI}", code=2))


def test_each_unseen_character_is_told_by_its_number(tmp_path):
    some = sorted(UNSEEN - {"\t", "\r", "\x00"})
    odd = [c for c in some if not 0xE0002 <= ord(c) <= 0xE007E]  # many of one kind
    with h5py.File(tmp_path / "a.h5", "w") as f:
        for c in odd:
            f[f"<{c}>"] = 1
    said = h5cow("ls", tmp_path / "a.h5")
    assert not UNSEEN & set(said)
    shown = set(re.findall(r"<(.*?)>", said))
    assert len(shown) == len(odd) and {f"\\u{ord(c):04x}" for c in odd if 0x80 <= ord(c) < 0x10000} <= shown
    assert {o["path"] for o in json.loads(h5cow("ls", "--json", tmp_path / "a.h5"))} == {f"/<{c}>" for c in odd}
