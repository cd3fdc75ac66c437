"""The runners that compare others' test-suites can fail: a lost test, a crash and a silent fall-back are seen."""

import pathlib
import re
import sys

import conformance
import pytest
import run
import run_api_suite
import run_hdf5_suite
import run_pytables_suite
import run_pytest_suites
import suites

OUTPUT = """\
Running API tests with VOL connector 'h5cow' and info string ''

*               API File Tests               *

Testing H5Fcreate                                                      PASSED
Testing H5Fopen with parts
  Testing read-only mode                                               PASSED
  Testing read-write mode                                             *FAILED*
    H5_api_file_test.c:1 in test(): couldn't open
Testing H5Fflush                                                       -SKIP-
*               API Group Tests               *
Testing H5Fcreate                                                     some words on the way
 PASSED
"""


def test_api_output_is_read_test_by_test():
    assert run_api_suite.parse(OUTPUT) == {
        "File / H5Fcreate": "passed",
        "File / H5Fopen with parts / read-only mode": "passed",
        "File / H5Fopen with parts / read-write mode": "failed",
        "File / H5Fflush": "skipped",
        "Group / H5Fcreate": "passed",
    }


def test_program_that_died_in_a_test_fails_that_test():
    died = OUTPUT + "Testing H5Gcreate                  \n"
    assert run_api_suite.parse(died)["Group / H5Gcreate"] == "failed"


def test_silent_fall_back_to_native_is_seen():
    assert run_api_suite.header_names(OUTPUT, "h5cow threads=2")
    assert not run_api_suite.header_names(OUTPUT, "pass_through")
    assert not run_api_suite.header_names(OUTPUT, None)


def test_lost_and_missing_tests_fail_and_native_failures_do_not():
    native = {"a": "passed", "b": "passed", "c": "failed", "d": "skipped", "e": "passed"}
    result = suites.compare(native, {"a": "passed", "b": "failed", "c": "failed", "d": "skipped"})
    assert (result.passed, result.skipped) == (1, 2)
    assert result.lost == [("b", "failed"), ("e", "missing")]


RUNNERS = (
    ["run_api_suite.py"],
    ["run_pytables_suite.py", "--only", "test_aux"],
    ["run_pytest_suites.py", "h5py"],
    ["run_pytest_suites.py", "h5netcdf"],
    ["run_pytest_suites.py", "pandas"],
    ["run_pytest_suites.py", "xarray"],
    ["run_pytest_suites.py", "netCDF4"],
)


@pytest.mark.parametrize("runner", RUNNERS, ids=lambda r: "-".join(r).replace(".py", ""))
def test_runner_stops_when_its_programs_run_without_the_connector(programs, runner, tmp_path):
    """Where the plugin is not found, and where another connector is selected than the one that makes histories."""
    folder = pathlib.Path(__file__).parent
    for plugins, connector in (("/nowhere", "h5cow"), (None, "pass_through")):
        more = {} if plugins is None else {"plugins": plugins}
        command = [sys.executable, "-B", folder / runner[0], *runner[1:], "--connector", connector, "--logs", tmp_path]
        env = {"H5COW_NETCDF4_SOURCE": str(tmp_path)}
        done = programs.connector("env", *(f"{k}={v}" for k, v in env.items()), *command, **more)
        assert done.returncode != 0 and "is not active in" in done.stderr, done.stdout + done.stderr
        assert not list(tmp_path.glob("suite-*.json"))


def test_exceptions_are_those_of_their_suite_and_only_where_the_test_failed():
    name = "test_basics::FilePropertyTestCase::test_get_filesize"
    native = {name: "passed", "other": "passed"}
    listed = suites.compare(native, {name: "failed", "other": "passed"}, "PyTables")
    assert (listed.exceptions, listed.lost, listed.passed, listed.skipped) == ([name], [], 1, 1)
    assert suites.compare(native, {name: "failed", "other": "passed"}, "h5py").lost == [(name, "failed")]
    assert suites.compare(native, {"other": "passed"}, "PyTables").lost == [(name, "missing")]  # it died
    assert suites.compare(native, {name: "passed", "other": "passed"}, "PyTables").exceptions == []


def test_page_has_counts_and_reasons_and_is_not_written_after_a_failure(tmp_path, monkeypatch, capsys):
    name = "test_basics::FilePropertyTestCase::test_get_filesize"
    monkeypatch.setattr(conformance, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(sys, "argv", ["conformance.py", str(tmp_path)])
    native = {name: "passed", "b": "passed"}
    assert suites.report("PyTables", "3.10", native, {**native, name: "failed"}, logs=tmp_path) == 0
    conformance.main()
    page = conformance.PAGE.read_text()
    assert "| PyTables | 3.10 | native | 2 | 0 | 0 |\n|  |  | connector | 1 | 1 | 0 |" in page
    assert name in page and conformance.reason("PyTables", name) in page
    conformance.PAGE.unlink()
    assert suites.report("PyTables", "3.10", {"b": "passed"}, {"b": "failed"}, logs=tmp_path) == 1
    with pytest.raises(SystemExit, match="not written"):
        conformance.main()
    assert not conformance.PAGE.exists()


def test_page_keeps_what_it_says_of_suites_that_were_not_run(tmp_path, monkeypatch):
    name = "test_basics::FilePropertyTestCase::test_get_filesize"
    monkeypatch.setattr(conformance, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(sys, "argv", ["conformance.py", str(tmp_path)])
    suites.report("PyTables", "3.10", {name: "passed"}, {name: "failed"}, logs=tmp_path)
    suites.report("h5py", "3.13", {"a": "failed", "b": "passed"}, {"a": "passed", "b": "passed"}, logs=tmp_path)
    conformance.main()
    first = conformance.PAGE.read_text()
    for file in tmp_path.glob("suite-*.json"):
        file.unlink()
    suites.report("h5py", "3.14", {"b": "passed"}, {"b": "passed"}, logs=tmp_path, others={"pass_through": {"b": "passed"}})
    conformance.main()
    second = conformance.PAGE.read_text()
    assert first.count("PyTables") == second.count("PyTables") and name in second
    assert "h5py: `a`" in first and "h5py: `a`" not in second
    assert "| h5py | 3.14 | native | 1 | 0 | 0 |\n|  |  | pass_through | 1 | 0 | 0 |\n|  |  | connector | 1 | 0 | 0 |" in second


def test_a_process_that_dies_costs_one_pytables_test(tmp_path, monkeypatch):
    """A test that kills its process, one before and one behind it, and a skipped one."""
    tables = tmp_path / "tables"
    (tables / "tests").mkdir(parents=True)
    (tables / "__init__.py").write_text("")
    (tables / "tests/__init__.py").write_text("")
    (tables / "tests/test_x.py").write_text(
        "import os, unittest\n"
        "class A(unittest.TestCase):\n"
        "    def test_1(self): pass\n"
        "    def test_2(self): os.abort()\n"
        "    def test_3(self): self.assertTrue(False)\n"
        "    @unittest.skip('')\n"
        "    def test_4(self): pass\n"
        "class B(A):\n"
        "    @classmethod\n"
        "    def setUpClass(cls): raise OSError\n"
        "def suite():\n"
        "    load = unittest.defaultTestLoader.loadTestsFromTestCase\n"
        "    return unittest.TestSuite([load(A), unittest.TestSuite([load(A), load(B)])])\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    found, deaths = run_pytables_suite.run_piece("test_x", 0, 1, None, tmp_path)
    assert deaths == 2
    for again in ("", " #2"):
        assert found[f"test_x::A::test_1{again}"] == "passed" and found[f"test_x::A::test_4{again}"] == "skipped"
        assert found[f"test_x::A::test_2{again}"] == found[f"test_x::A::test_3{again}"] == "failed"
    assert list(found.values()).count("failed") == 5 and "test_x::B::test_1" not in found  # 5: B could not be set up


def test_pytest_names_are_those_of_file_and_class(tmp_path):
    xml = tmp_path / "x.xml"
    case = '<testcase classname="{}" name="test_a">{}</testcase>'
    cases = case.format("deep.folder.test_f.TestG", "") + case.format("deep.test_f", "<failure/>")
    xml.write_text(f"<testsuites><testsuite>{cases}</testsuite></testsuites>")
    assert run_pytest_suites.parse(xml, "test_f") == {"test_f::TestG::test_a": "passed", "test_f::test_a": "failed"}


def test_empty_native_run_is_a_failure(capsys):
    assert suites.report("suite", "1", {}, {}) == 1
    assert "0 passed, 1 failed, 0 skipped" in capsys.readouterr().out


def test_every_c_test_is_registered_with_meson():
    folder = pathlib.Path(__file__).parent
    build = (folder / "meson.build").read_text()
    registered = re.findall(r"^  '(\w+)': (?:true|false),$", build, re.MULTILINE)
    registered += re.findall(r"^  executable\('test_(\w+)', ", build, re.MULTILINE)
    table = re.search(r"^foreach name, helpers : \{\n(.*?)^\}$", build, re.MULTILINE | re.DOTALL).group(1)
    registered += re.findall(r"^  '(\w+)': \[", table, re.MULTILINE)
    assert sorted(registered) == sorted(file.stem.removeprefix("test_") for file in folder.glob("test_*.c"))


PROGRAM = """\
Testing with normal parameters
Testing simple write                                                   PASSED
Testing a name that fills the whole of its place and is followed at once*FAILED*
   at test.c:1 in test()...
Testing simple write                                                   -SKIP-
   Testing filters (setup)                                             PASSED
  With another mode     *FAILED*
Testing  -- Datatypes (types)
Testing the one that it died in                                        """


def test_output_of_hdf5s_programs_is_read_line_by_line():
    assert run_hdf5_suite.parse(PROGRAM) == {
        "simple write": "passed",
        "a name that fills the whole of its place and is followed at once": "failed",
        "simple write #2": "skipped",
        "filters (setup)": "passed",
    }


def test_what_a_failing_program_hides_is_lost_unless_it_is_an_exception():
    native = {"mtime": "passed", "mtime / one": "passed", "mtime / two": "passed", "big": "passed"}
    connector = {"mtime": "failed", "mtime / one": "failed", "big": "passed"}
    run_hdf5_suite.hidden(native, connector)
    assert connector["mtime / two"] == "failed"
    found = suites.compare(native, connector, run_hdf5_suite.SUITE)
    assert [name for name, _ in found.lost] == ["mtime", "mtime / one", "mtime / two"] and found.passed == 1


def test_cmake_is_left_out_where_it_only_looks_at_the_exit_code():
    plain = ["cmake", "-D", "TEST_PROGRAM=/bin/a", "-D", "TEST_ARGS:STRING=-x y", "-D", "TEST_SKIP_COMPARE=TRUE"]
    plain += ["-D", "TEST_ENV_VAR:STRING=PREFIX", "-D", "TEST_ENV_VALUE:STRING=\\${ORIGIN}/x"]
    assert run_hdf5_suite.without_cmake(plain) == (["/bin/a", "-x", "y"], {"PREFIX": "${ORIGIN}/x"})
    compared = ["cmake", "-D", "TEST_PROGRAM=/bin/a", "-D", "TEST_REFERENCE=out"]
    assert run_hdf5_suite.without_cmake(compared) == (compared, {})


def test_what_was_tested_elsewhere_is_counted(tmp_path, monkeypatch, capsys):
    """And what ended without a count has failed."""
    monkeypatch.setattr(run, "BUILD", tmp_path)
    (tmp_path / "elsewhere").mkdir()
    for name, text in {
        "One": "x\n3 passed, 0 failed, 2 skipped\n",
        "Other": "Other: skipped, since its Debian root cannot be made\n0 passed, 0 failed, 1 skipped\n",
        "Third": "it does not build\nended with exit code 1\n",
        "Fourth": "Part: 5 passed, 0 failed, 0 skipped\nTraceback\nended with exit code 1\n",
    }.items():
        (tmp_path / f"elsewhere/{name}.log").write_text(text)
    tests = run.Tests()
    run.elsewhere(tests)
    said = capsys.readouterr().out
    assert tests.total == [8, 2, 3] and tests.end() == 1
    assert "skipped, since its Debian root cannot be made" in said and "| it does not build" in said
