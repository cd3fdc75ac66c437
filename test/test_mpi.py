"""One plugin file for the libhdf5 of each MPI: programs of many processes (ranks.c), by MPI-IO and without.

Only ./dev test --mpi has an MPI. MPI-IO keeps no history; a file that has one it may read. What would write over it is refused
by all processes alike: if one went on alone, HDF5 would wait for the others for ever.
"""

import json
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
from conftest import H5COW, PLUGINS, STOCK

TEST = pathlib.Path(__file__).resolve().parent
LIMIT = 120  # seconds; what hangs has failed
ENV = {
    **STOCK,
    "HDF5_PLUGIN_PATH": PLUGINS,
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}


@pytest.fixture(scope="module", params=["openmpi", "mpich"])
def ranks(request, tmp_path_factory):
    """Runs ranks.c: ranks(NUMBER, WORD, FILE) gives what each process has said, by number, and standard error."""
    mpi = request.param
    compiler, start = (shutil.which(f"{name}.{mpi}") for name in ("mpicc", "mpirun"))
    if compiler is None or start is None:
        pytest.skip(f"there is no {mpi} here: ./dev test --mpi has it")
    folder = tmp_path_factory.mktemp(mpi)
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", f"hdf5-{mpi}"], capture_output=True, text=True, check=True)
    built = subprocess.run([compiler, "-Wall", "-Werror", "-o", folder / "ranks", TEST / "ranks.c", *flags.stdout.split()],
                           capture_output=True, text=True)  # fmt: skip
    assert built.returncode == 0, built.stderr
    needed = subprocess.run(["readelf", "-d", folder / "ranks"], capture_output=True, text=True).stdout
    assert f"libhdf5_{mpi}" in needed, needed

    def run(number, what, file, before=(), connector="h5cow"):
        command = [*before, start, *(["--oversubscribe"] if mpi == "openmpi" else []), "-n", str(number), folder / "ranks", what, file]
        env = {**ENV, **({"HDF5_VOL_CONNECTOR": connector} if connector else {})}
        done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=LIMIT)
        assert done.returncode == 0, done.stdout + done.stderr
        said = re.compile(r"\d+ (refused|done|failed|not closed)")  # the program; Open MPI has lines of its own now and then
        return sorted(line for line in done.stdout.splitlines() if said.match(line)), done.stderr

    return run


@pytest.fixture
def made(ranks, programs, tmp_path):
    """A file with history: what `create` writes, three times."""
    ranks(2, "root", tmp_path / "made.h5")
    assert versions(tmp_path / "made.h5") == ["1", "2", "3"]
    return tmp_path / "made.h5"


def versions(path):
    done = subprocess.run([H5COW, "log", "--json", path], capture_output=True, text=True, env=STOCK)
    return sorted((v["name"] for v in json.loads(done.stdout)), key=int) if done.returncode == 0 else None


def answers(lines):
    return [line.split()[1] for line in lines]


@pytest.mark.parametrize("number", [2, 4])
def test_mpi_io_passes_through(ranks, tmp_path, number):
    """The same bytes to read as without the connector, no history, and no warning but that."""
    file = tmp_path / "f.h5"
    for what in ("create", "change", "read"):
        with_it = ranks(number, what, file)
        without = ranks(number, what, tmp_path / "native.h5", connector="")
        assert with_it[0] == without[0] and set(answers(with_it[0])) == {"done"} and len(with_it[0]) == number, what
        assert "h5cow" not in with_it[1] and "HDF5-DIAG" not in with_it[1], with_it[1]
    assert versions(file) is None
    compared = subprocess.run(["h5diff", file, tmp_path / "native.h5"], capture_output=True, text=True, env=STOCK)
    assert (compared.returncode, compared.stdout) == (0, ""), compared.stdout
    lines, said = ranks(number, "exclusive", file)
    assert answers(lines) == ["refused"] * number and "h5cow" not in said


def test_run_says_that_mpi_io_makes_no_version(ranks, tmp_path):
    file = tmp_path / "f.h5"
    said = [line for line in ranks(2, "create", file, before=[H5COW, "run", "--"], connector="")[1].splitlines() if "h5cow" in line]
    assert len(said) == 1 and f"'{file}' has no history" in said[0] and "h5cow import" in said[0], said


@pytest.mark.parametrize("number", [2, 4])
@pytest.mark.parametrize("what", ["create", "exclusive", "change"])
def test_a_file_with_history_is_refused_by_all(ranks, made, sha256, what, number):
    before, beside = sha256(made), sorted(made.parent.iterdir())
    lines, said = ranks(number, what, made)
    assert lines == [f"{n} refused" for n in range(number)]
    reasons = [line for line in said.splitlines() if str(made) in line and "it has a history" in line and "MPI-IO" in line]
    assert len(reasons) >= number, said
    assert sha256(made) == before and sorted(made.parent.iterdir()) == beside


def test_a_damaged_file_with_history_is_refused_by_all(ranks, made, sha256):
    """Nobody can open it; but the name of the history's group is still in it."""
    data = made.read_bytes()
    at, group = data.index(b"_versioned_data"), b"_versioned_data"
    made.write_bytes(b"\xff" * at + group + b"\xff" * (len(data) - at - len(group)))
    before = sha256(made)
    lines, said = ranks(4, "create", made)
    assert lines == [f"{n} refused" for n in range(4)] and "was not emptied" in said and sha256(made) == before


def test_what_a_program_left_that_died_is_no_file_yet(ranks, programs, tmp_path):
    code = "import h5py, os, sys\nf = h5py.File(sys.argv[1], 'w')\nf['x'] = range(100000)\nos._exit(7)"
    died = programs.connector(sys.executable, "-c", code, tmp_path / "f.h5")
    assert died.returncode == 7 and (tmp_path / "f.h5").exists() and versions(tmp_path / "f.h5") is None
    assert answers(ranks(4, "create", tmp_path / "f.h5")[0]) == ["done"] * 4


def test_who_cannot_see_the_file_is_refused_with_the_others(ranks, made, sha256):
    before = sha256(made)
    lines, said = ranks(4, "missing", made)
    assert lines == [f"{n} refused" for n in range(4)]
    assert "another process of this MPI program" in said and "it has a history" in said and sha256(made) == before


def test_head_and_versions_are_read_through_mpi_io(ranks, made, tmp_path):
    """Versions have the rows of one process, so two would read beyond them."""
    for revision, add in (("", 2), ("@1", 0), ("@2", 1)):
        lines, said = ranks(1, "read", f"{made}{revision}")
        assert lines == [f"0 done {2 * sum(add + i for i in range(1024))}"] and "h5cow" not in said, (revision, lines, said)
    assert answers(ranks(4, "create", tmp_path / "four.h5")[0]) == ["done"] * 4
    native = ranks(4, "read", tmp_path / "four.h5", connector="")[0]
    imported = subprocess.run([H5COW, "import", tmp_path / "four.h5"], capture_output=True, text=True, env=ENV)
    assert imported.returncode == 0, imported.stderr
    for what, expected in ("read", native), ("together", native), ("first", native[:1] + [f"{n} done 0" for n in (1, 2, 3)]):
        for name in "four.h5", "four.h5@1":
            lines, said = ranks(4, what, tmp_path / name)
            assert lines == expected and "HDF5-DIAG" not in said, (what, name, said)
    lines, said = ranks(4, "read", f"{tmp_path / 'four.h5'}@nowhere")
    assert answers(lines) == ["refused"] * 4 and "nowhere" in said
    lines, said = ranks(4, "change", f"{tmp_path / 'four.h5'}@1")
    assert answers(lines) == ["refused"] * 4 and "never changed" in said


def test_serial_calls_of_an_mpi_program_keep_history(ranks, programs, tmp_path):
    lines, said = ranks(4, "serial", tmp_path / "f.h5")
    assert answers(lines) == ["done"] * 4 and "h5cow" not in said and "HDF5-DIAG" not in said, said
    for n in range(4):
        assert versions(tmp_path / f"f.h5.{n}") == ["1", "2", "3"]
        programs.verified(tmp_path / f"f.h5.{n}")


def test_doctor_names_the_parallel_library(ranks, tmp_path):
    command = [H5COW, "doctor", "--json", "--program", H5COW, "run", "--"]
    file = tmp_path / "f.h5"
    before = ["sh", "-c", '"$@" >"$0"', tmp_path / "told", *command]
    ranks(2, "serial", file, before=before)
    told = json.loads((tmp_path / "told").read_text())
    found = {(re.search(r"libhdf5_(openmpi|mpich)", each["file"])[0], each["service"]) for each in told["program"]["libraries"]}
    assert len(found) == 1 and {service for _, service in found} == {"served"}, told["program"]
    assert told["problems"] == [] and sys.platform == "linux"
