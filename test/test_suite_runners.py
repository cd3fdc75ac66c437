"""The runners that compare others' test-suites can fail: a lost test, a crash and a silent fall-back are seen."""

import pathlib
import re

import run_api_suite
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


def test_empty_native_run_is_a_failure(capsys):
    assert suites.report("suite", {}, {}) == 1
    assert "0 passed, 1 failed, 0 skipped" in capsys.readouterr().out


def test_every_c_test_is_registered_with_meson():
    folder = pathlib.Path(__file__).parent
    build = (folder / "meson.build").read_text()
    registered = re.findall(r"^  '(\w+)': (?:true|false),$", build, re.MULTILINE)
    registered += re.findall(r"^  executable\('test_(\w+)', ", build, re.MULTILINE)
    registered += re.findall(r"'(\w+)'", re.search(r"^foreach name : (\[.*\])$", build, re.MULTILINE).group(1))
    assert sorted(registered) == sorted(file.stem.removeprefix("test_") for file in folder.glob("test_*.c"))
