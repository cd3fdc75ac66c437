"""docs/promises.md, "When something fails": each row has its tests, and what is damaged in the head costs the version alone."""

import json
import re
import subprocess
import sys

import pytest
from conftest import H5COW, PLUGINS, STOCK, TEST
from waiting import WAITING

OURS = {**STOCK, "HDF5_PLUGIN_PATH": PLUGINS, "HDF5_VOL_CONNECTOR": "h5cow"}

# The beginning of the row, and where it is tested: file, and a name in it.
ROWS = {
    "the disk, in reading": [("test_lost.py", "test_h5py_programs"), ("test_lost.py", "test_a_quota_is_as_a_full_disk"), ("faults.c", '"full"')],
    "memory for the head's own data": [("faults.c", '"memory"')],
    "a filter refuses a chunk": [("test_filters.c", "test_a_chunk_that_a_filter_refuses_is_lost_alone"), ("test_filters.c", "test_no_close_that_fails_crashes")],
    "a filter that must be there is missing": [("test_filters.c", "test_a_filter_that_is_missing"), ("test_filters.c", "test_a_filter_that_is_taken_away")],
    "an object cannot be put into a version": [("version_faults.c", "MEMORY"), ("test_promised.py", "test_damage_in_the_head_costs_the_version_alone")],
    "an attribute, a comment": [("version_faults.c", "CALLS")],
    "attributes of which the program changes none": [("test_promised.py", "test_damage_in_the_head_costs_the_version_alone")],
    "a dataset's external files": [("test_head.c", "test_external_storage_found_by_a_prefix_or_lost"), ("test_head.c", "test_external_storage_resized_in_any_dimension")],
    "the version as a whole": [("version_faults.c", "cow_version_commit")],
    "that, and taking it back": [("faults.c", "ever")],
    "the mark that a version is finished": [("version_faults.c", "ROUNDS"), ("test_written_tables.py", "a version stays open")],
}


def test_each_row_has_its_tests():
    page = (TEST.parent / "docs/promises.md").read_text()
    table = page[page.index("## When something fails"):].split("\n\n")[2]
    rows = [line.split("|")[1].strip() for line in table.splitlines()[2:]]
    assert len(rows) == len(ROWS)
    for row, (begins, tests) in zip(rows, ROWS.items()):
        assert row.startswith(begins)
        for path, name in tests:
            assert name in (TEST / path).read_text(), (path, name)


def python(code, path):
    done = subprocess.run([sys.executable, "-c", f"import h5py, sys\npath = sys.argv[1]\n{code}", str(path)], env=OURS, capture_output=True,
                          text=True, timeout=WAITING)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def command(*words):
    done = subprocess.run([H5COW, *map(str, words)], env={**STOCK, "HDF5_PLUGIN_PATH": PLUGINS}, capture_output=True, text=True, timeout=WAITING)
    return done.returncode, done.stdout + done.stderr


DAMAGES = {
    "elements": (b"\x11\x22\x33\x44\x55\x66\x77\x11", "f['x'].attrs['other'] = 2"),
    "text of an attribute": (b"a text that is in a heap", "f['x'][0] = 2"),
}


@pytest.mark.parametrize("what", DAMAGES)
def test_damage_in_the_head_costs_the_version_alone(tmp_path, what):
    """The head is committed, the version does without, and says so; older versions are as they were, and so is what comes later."""
    path = tmp_path / "run.h5"
    where, change = DAMAGES[what]
    python("f = h5py.File(path, 'w')\nf['x'] = [int.from_bytes(bytes.fromhex('1122334455667711'), 'little')] * 3\n"
           "f['x'].attrs['text'] = 'a text that is in a heap'\nf['y'] = 1\nf.close()", path)
    data = path.read_bytes()
    places = [m.start() for m in re.finditer(re.escape(where), data)]
    assert places
    if what == "elements":
        places = [int(python("f = h5py.File(path, 'r')\nprint(f['x'].id.get_offset())", path)[0])]
    with open(path, "r+b") as file:  # a text stands in the head, in the version and in the journal
        for at in places:
            file.seek(at + 2)
            file.write(b"\x7a")
    said = python(f"f = h5py.File(path, 'r+')\n{change}\nf['y'][()] = 2\nf.close()", path)[1]
    assert said.count("h5cow: ") == 1 and "x" in said, said
    shown = "f['x'].attrs['other']" if what == "elements" else "f['x'][0]"
    seen = python(f"f = h5py.File(path, 'r')\nprint(f['y'][()], {shown})", path)[0]
    assert seen.split() == ["2", "2"]
    log = json.loads(command("log", "--json", path)[1])
    assert len(log) == 2
    assert "incomplete" in json.dumps(log[0]) or "incomplete" in json.dumps(log[1]), log
    code, text = command("verify", path)
    assert code == 1 and "/x" in text, text
