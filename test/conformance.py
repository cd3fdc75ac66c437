#!/usr/bin/env python3
"""Which tests of others' suites are known to end otherwise with the connector, and why; and the page that says so.

usage: conformance.py LOGS    write docs/conformance.md from the results that the runners left in the folder LOGS

EXCEPTIONS is the whole list. A test that passes natively, fails with the connector and is not in it is a failure of
`./dev test`. The page is made of what was measured and of this list, never by hand: the lines of suites of which there are
results are replaced, those of the others stay.
"""

import fnmatch
import json
import pathlib
import re
import sys

PAGE = pathlib.Path(__file__).resolve().parent.parent / "docs/conformance.md"

# Suite -> (pattern of test names, or several, why). The patterns are fnmatch's.
EXCEPTIONS = {
    "HDF5 tests": [
        (
            (
                "btree2*", "farray*", "earray*", "fheap*", "stab*", "freespace*", "mf*",
                "unlink / *dataset with * allocation*", "unlink / *compressed, chunked dataset*",
            ),
            "Look inside: the file must have its former size once all is deleted. In a file with history, what was "
            "committed stays, and the history needs room itself.",
        ),
        (
            ("accum*", "cache", "cache / *", "cache_tagging*", "page_buffer*", "ohdr*", "cork*"),
            "Look inside: put entries of their own into the metadata cache, the accumulator or the page buffer of the "
            "native file, or object headers of their own into it, by functions that are no part of HDF5's interface, and "
            "count what is cached. Views, versions and the journal are in the same caches.",
        ),
        (
            ("cache_api*",),
            "Looks inside: compares the configuration in the native file's metadata cache. The cache of a file with "
            "history is never smaller than 1 MiB (access.md); H5Fget_mdc_config tells what was set. The file stays open "
            "then, and the rest cannot create it.",
        ),
        (
            ("evict_on_close*",),
            "Looks inside: asks H5D__layout_idx_type_test for the chunk index of the native dataset, which is virtual, and "
            "counts what of it is in the metadata cache.",
        ),
        (
            ("onion*",),
            "The onion driver is put over a file with history, whose bytes it would change without the journal: refused "
            "(access.md).",
        ),
        (
            ("error_test",),
            "Forbids plugins (HDF5_PLUGIN_PRELOAD=::), and the connector is one: HDF5 does not start.",
        ),
        (
            ("flush2*",),
            "Expects a file that its program left without a flush and without closing it to be there, and damaged. Here "
            "it holds nothing yet and counts as missing (promises.md).",
        ),
        (
            ("testhdf5-file",),
            "Looks inside: H5F__check_cached_stab_test reads the symbol table of the root group, which is of the newer "
            "kind, through a null pointer, and ends the program.",
        ),
        (
            ("dtypes", "dtypes / encoding datatypes with the 'use the latest format' flag*", "dtypes / _Float16 datatype*"),
            "Look inside: a datatype in the older format must take more room than in the newer, and a file have a certain "
            "size. Files with history are written in the newer format (access.md), and hold more.",
        ),
        (
            ("links / unlinking external link in dense group*", "links / external link along for the ride*"),
            "Look inside: H5G__is_empty_test counts the messages of the native root group, which has the connector's own "
            "group in it.",
        ),
        (
            ("links / user-defined link callbacks*",),
            "A class of user-defined links must be asked for no other name than one. HDF5 asks it whenever it tells of a "
            "link (H5G__link_to_info), and the connector must know what kind of link it deletes.",
        ),
        (
            (
                "swmr / H5Drefresh()--concurrent access*",
                "swmr / H5Fstart_swmr_write()--concurrent access*",
            ),
            "A reader that has the file open sees later flushes of another process. With a history it keeps the state that "
            "it opened (options.md).",
        ),
        (
            (
                "swmr / H5Fset_metadata_read_retry_info()",
                "swmr / H5Fstart_swmr_write() when creating/opening a file*",
                "swmr / H5Fstart_swmr_write()--stress object header messages",
            ),
            "Look inside: the retries of the native file, the chunk index of the native dataset, the places of messages in "
            "its object header.",
        ),
        (
            ("swmr / H5Fstart_swmr_write() on failure conditions for without latest format",),
            "Expects that a file which was made with the oldest format cannot be opened for SWMR. Files with history are of "
            "the newer format, and can.",
        ),
    ],
    "PyTables": [
        (
            "test_basics::FilePropertyTestCase::test_get_filesize",
            "Expects a file of 32 MB for 32 MB of zeros. Equal chunks are stored once, so the file has 0.3 MB. "
            "Nothing of libhdf5: the purpose of h5cow.",
        ),
        (
            "test_*::SizeOnDiskInMemoryPropertyTestCase::*",
            "Expect the size of the file to differ by at most 6000 bytes from the size of the chunks that HDF5 "
            "tells. A file with history also holds its index, versions and views, and equal chunks only once.",
        ),
        (
            "test_create::CoreDriverNoBackingStoreTestCase::test_openFile[AR]*",
            "Open a file for writing with the core driver, which keeps the changes in memory. The driver reads "
            "the file itself, past the journal, and libhdf5 (H5O_UNKNOWN message in the superblock extension, "
            "H5Oint.c) refuses to open it for writing: that mark is what protects the history. Opening for "
            "reading works.",
        ),
    ],
    "netCDF4-python": [
        (
            "test_alignment::*::test_setting_alignment",
            "Looks for addresses in the output of h5ls --address, which prints them with H5Ddebug. That function "
            "of libhdf5 (H5D.c) bypasses the VOL: it prints the layout of the native object, which is virtual. "
            "H5Dget_offset and H5Dget_chunk_info tell the addresses.",
        ),
        (
            "test_compression::*::runTest",
            "Expects a file with Fletcher-32 checksums to be larger by 80 bytes. Both variables of that test are "
            "equal and are stored once, and HDF5 allocates the rest of the file in larger blocks: the sizes are "
            "the same.",
        ),
    ],
    "xarray": [
        (
            "test_backends::TestH5NetCDF*::test_refresh_from_disk",
            "Copies another file over one that is open (cp, round HDF5) and opens it again. libhdf5 has one state "
            "for all openings of a file in a process (H5F_shared_t), so the second opening sees the metadata of "
            "the first: natively the new bytes of the data happen to be at the old address. h5cow reports that "
            "they are not what was written. See promises.md, Assumed.",
        ),
    ],
}

BEGIN = """\
# Conformance

The test-suites of others, each run twice on the same machine: with HDF5 alone ("native") and with the connector. Every test
that passes natively must pass with the connector. Written by `./dev test --suites --write-docs`; do not edit.

What each runner proves first: that the suite's own HDF5 library really goes through the connector, since programs go on
without one where it cannot be loaded.

HDF5's own test programs ("HDF5 tests") run a third time with `pass_through`, HDF5's connector that changes nothing. They are
counted twice. "ctest entries": what ctest of HDF5's CMake build calls H5TEST*, each passed when its program ends as it should;
those that only remove files are among them, and pass always. "HDF5 tests": the programs and each line "Testing ..." that one
prints; what stands behind the end of a program that failed counts as failed.

| suite | version | | passed | failed | skipped |
|---|---|---|---|---|---|
"""

RUNS = ("native", "pass_through", "connector")
EXCEPTIONS_BEGIN = """
## Exceptions

Tests that pass natively and not with the connector.

| suite | test | cause |
|---|---|---|
"""
GAINED = "The other way round, failed natively and passed with the connector: "


def reason(suite, name):
    """Why this test is an exception, or None."""
    for patterns, why in EXCEPTIONS.get(suite, ()):
        for pattern in (patterns,) if isinstance(patterns, str) else patterns:
            if fnmatch.fnmatchcase(name, pattern):
                return why
    return None


def shortened(names):
    """Names for a cell of the page: a repeated one once, with how often."""
    counted = {}
    for name in names:
        plain = re.sub(r" #\d+$", "", name)
        counted[plain] = counted.get(plain, 0) + 1
    cells = [f"`{name}`" + (f" ({times} times)" if times > 1 else "") for name, times in counted.items()]
    return "<br>".join(cells)


def lines_of(result):
    """The page's lines on one suite: counts, exceptions, what was gained. RESULT: what suites.report saved."""
    counts = []
    for run in RUNS:
        if run in result:
            numbers = " | ".join(str(result[run][kind]) for kind in ("passed", "failed", "skipped"))
            first = " | " if counts else f"{result['suite']} | {result['version']}"
            counts.append(f"| {first} | {run} | {numbers} |")
    by_reason = {}
    for name in result["exceptions"]:
        by_reason.setdefault(reason(result["suite"], name), []).append(name)
    exceptions = [f"| {result['suite']} | {shortened(names)} | {why} |" for why, names in by_reason.items()]
    return counts, exceptions, [f"{result['suite']}: `{name}`" for name in result["gained"]]


def read(text):
    """The same of all suites on a page, by suite."""
    found, suite = {}, None
    before, _, after = text.partition(EXCEPTIONS_BEGIN.strip().splitlines()[0])
    for line in before.splitlines():
        cells = line.split("|")
        if line.startswith("|") and cells[3].strip() in RUNS:
            suite = cells[1].strip() or suite
            found.setdefault(suite, ([], [], []))[0].append(line)
    for line in after.splitlines():
        suite = line.split("|")[1].strip() if line.startswith("|") else None
        if suite in found:
            found[suite][1].append(line)
        for gained in line.removeprefix(GAINED).removesuffix(".").split(", ") if line.startswith(GAINED) else ():
            found[gained.partition(": `")[0]][2].append(gained)
    return found


def page(results, before=""):
    """The text of the page. BEFORE: what stands on it about other suites stays."""
    suites = read(before) | {result["suite"]: lines_of(result) for result in results}
    parts = [suites[suite] for suite in sorted(suites, key=str.lower)]
    text = BEGIN + "".join(f"{line}\n" for counts, _, _ in parts for line in counts)
    text += EXCEPTIONS_BEGIN + "".join(f"{line}\n" for _, exceptions, _ in parts for line in exceptions)
    gained = [name for _, _, names in parts for name in names]
    return text + (f"\n{GAINED}{', '.join(gained)}.\n" if gained else "")


def main():
    files = sorted(pathlib.Path(sys.argv[1]).glob("suite-*.json"))
    results = [json.loads(file.read_text()) for file in files]
    if not results:
        sys.exit(f"no results in {sys.argv[1]}")
    wrong = [result["suite"] for result in results if result["lost"] or not result["whole"]]
    if wrong:
        sys.exit(f"not written, since these have lost tests or were not run in full: {', '.join(wrong)}")
    PAGE.write_text(page(results, PAGE.read_text() if PAGE.exists() else ""))
    print(f"wrote {PAGE}")


if __name__ == "__main__":
    main()
