"""reach.py can fail: a cell without the connector, one whose flush is lost, one that keeps too much; and its page keeps what it had."""

import datetime
import os
import sys

import pytest
import reach

CELL = ("trixie", "h5py")


@pytest.fixture
def trial(package, tmp_path, programs):
    """The cell of the distribution's h5py, with the plugin of the build folder; the program may be changed."""
    import h5py

    def trial(*changes):
        cell = next(cell for cell in reach.cells() if (cell.place, cell.name) == CELL)
        cell.hdf5 = dict.fromkeys(cell.hdf5, h5py.version.hdf5_version)
        trial = reach.Trial(cell, package / "plugin", tmp_path)
        trial.words[0] = sys.executable
        for old, new in changes:
            assert old in trial.words[2]
            trial.words[2] = trial.words[2].replace(old, new)
        return trial

    return trial


def test_a_cell_that_is_right(trial):
    assert reach.check(trial()) == ["yes", "`@1`", "yes", "yes"]


@pytest.mark.parametrize(
    "change, why",
    [
        (("import sys, time", "import os, sys, time; os.environ.pop('HDF5_VOL_CONNECTOR')"), "unable to open file: name = 'h5py.h5@1'"),
        (("module[\"flush\"](file)", "pass"), "version that is newest reads"),
        (("module[\"put\"](file, 4)", "module[\"put\"](file, 4); module[\"flush\"](file)"), "version that is newest reads"),
        (("= n + 1", "= n + 1 + (n > 2)"), "version that is newest reads"),
        (("\"ready\"", "\"unready\""), "said 'unready"),
        (("import sys, time", "import sys, time; sys.stderr.write('heard')"), "heard"),
    ],
)
def test_what_is_wrong_is_found(trial, change, why):
    with pytest.raises(reach.Failed) as failed:
        reach.check(trial(change))
    assert why in str(failed.value)


def test_another_release_than_expected_is_found(trial):
    wrong = trial()
    wrong.cell.hdf5 = dict.fromkeys(wrong.cell.hdf5, "1.14.0")
    with pytest.raises(reach.Failed, match="not 3 by HDF5 1.14.0"):
        reach.check(wrong)


def test_another_library_than_expected_is_found(trial):
    wrong = trial()
    wrong.cell.library = "libhdf5_openmpi.so"
    with pytest.raises(reach.Failed, match="does not use libhdf5_openmpi.so"):
        reach.check(wrong)


def test_damage_is_found(trial, tmp_path):
    """After the crash, before the last look."""
    damaged = trial()
    write = damaged.write

    def break_it(n):
        write(n)
        if n == 4:
            path = tmp_path / "h5py.h5"
            data = bytearray(path.read_bytes())
            data[len(data) // 2 :] = os.urandom(len(data) - len(data) // 2)
            path.write_bytes(data)

    damaged.write = break_it
    with pytest.raises(reach.Failed):
        reach.check(damaged)


def test_the_page_keeps_what_was_not_tried(monkeypatch):
    results = [{"place": "trixie", "name": "h5py", "hdf5": "1.14.5", "outcome": "passed", "said": ["yes"] * 4},
               {"place": "trixie", "name": "C", "hdf5": "1.14.5", "outcome": "passed", "said": ["yes"] * 4}]
    monkeypatch.setattr(reach.datetime, "date", type("Day", (datetime.date,), {"today": classmethod(lambda day: day(2026, 3, 4))}))
    first = reach.page(results, "")
    former = first.replace("2026-03-04", "2020-01-31")
    assert first.count("not run") == len(list(reach.cells())) - 2 + len(reach.NOT_RUN)
    results[1]["outcome"] = "skipped"
    rows = reach.page(results, former).splitlines()
    assert next(row for row in rows if row.startswith("| Debian 13 | C |")).endswith("| 2020-01-31 |")
    assert next(row for row in rows if row.startswith("| Debian 13 | h5py |")).endswith("| 2026-03-04 |")
    assert len(rows) == len(first.splitlines())


def test_the_modules_are_those_of_dev():
    modules = (reach.TOP / "dev").read_text().partition("\nwheel_modules=(")[2].partition(")")[0].split()
    assert all(any(m.startswith(f"{name}=={release}") for m in modules) for name, release in reach.WHEELS.items())


def test_the_page_has_all_cells():
    """What reach.py knows, docs/reach.md tells, and nothing else."""
    told = [tuple(part.strip() for part in row.split("|")[1:3]) for row in reach.PAGE.read_text().splitlines() if row.startswith("| ")]
    assert told[1:] == [(reach.PLACES[c.place], c.name) for c in reach.cells()] + [("", name) for name in reach.NOT_RUN]
    assert reach.PAGE.read_text().startswith(reach.BEGIN)
