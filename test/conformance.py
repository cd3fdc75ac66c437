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

# Suite -> (pattern of test names, or several, why). The patterns are fnmatch's. What stands behind a comma in a suite's name
# tells it from the same tests elsewhere.
EXCEPTIONS = {
    "HDF5 tests": [
        (
            (
                "btree2*", "farray*", "earray*", "fheap*", "stab*", "freespace*", "mf*",
                "unlink", "unlink / *",
                "links / group link filters*", "links / user-defined hard link (w/new group format)",
                "links / transitioning group with creation order*", "links / deleting group with creation order*",
            ),
            "Look inside: at the size of the file, the place of blocks in it and the sizes of HDF5's aggregators and free-space "
            "managers. In a file with history, what was committed stays, and the history and the journal need room themselves; "
            "metadata is allocated in smaller blocks (access.md).",
        ),
        (
            ("file_image*",),
            "Looks inside: compares the image of an open file byte for byte with the file on the disk. The image is whole without "
            "the journal, whose blocks and fence are in the file.",
        ),
        (
            ("accum*", "cache", "cache / *", "cache_tagging*", "page_buffer*"),
            "Look inside: put entries of their own into the metadata cache, or bytes at addresses of their own into the native "
            "file, by functions that are no part of HDF5's interface, and look for what is cached. Views, versions and the "
            "journal are in the same caches, and at these addresses.",
        ),
        (
            ("ohdr*",),
            "Looks inside: makes object headers by internal functions, and takes one out of the metadata cache by force. Where the "
            "space behind it is taken, it has got a second block (H5O__alloc_chunk), for which HDF5 pins it (seen in a debugger).",
        ),
        (
            ("evict_on_close*", "objcopy", "objcopy / *"),
            "Look inside: ask H5D__layout_idx_type_test for the chunk index of the native dataset, which is virtual, and count what "
            "of it is in the metadata cache. What such a test leaves open cannot be created anew by the next ones.",
        ),
        (
            ("objcopy_ref*",),
            "Copies into a file with shared messages, where HDF5 marks each object that is created as one that tracks the creation "
            "order of attributes (H5Oint.c). HDF5's H5Ocopy copies object headers as they are; a history's makes new objects, and "
            "H5Dget_create_plist of the copy tells of the mark. What the test leaves open cannot be created anew by the next ones.",
        ),
        (
            ("onion*",),
            "The onion driver is put over a file with history, whose bytes it would change without the journal: refused "
            "(access.md).",
        ),
        (
            ("vol / getting connector name",),
            "Skipped by the test itself: it knows the names of native and pass_through only.",
        ),
        (
            ("error_test",),
            "Forbids plugins (HDF5_PLUGIN_PRELOAD=::), and the connector is one: HDF5 does not start.",
        ),
        (
            ("testhdf5-file",),
            "Looks inside: H5F__check_cached_stab_test reads the symbol table of the root group, which is of the newer "
            "kind, through a null pointer, and ends the program.",
        ),
        (
            ("testhdf5-base", "testhdf5-base / *"),
            "Looks inside: at sizes of files, and how attributes are stored (H5O__is_attr_dense_test); and expects of the older "
            "format, where it takes the connector for HDF5 itself, that it has no attributes of more than 64 KiB. Files with "
            "history are of the newer format, and have them. What these tests leave open cannot be created anew by the next ones.",
        ),
        (
            (
                "dtypes", "dtypes / encoding datatypes with the 'use the latest format' flag*", "dtypes / _Float16 datatype*",
                "dtypes / version bounds with nested datatypes*",
            ),
            "Look inside: at the version of encoded datatypes and their size in the older and the newer format, and at the size of "
            "the file, which must hold the elements of a dataset that was never written. Equal chunks are stored once, and files with "
            "history are written in the newer format (access.md).",
        ),
        (
            ("vds", "vds / virtual dataset create*"),
            "Look inside: at the bytes that the mappings of a virtual dataset take in the file (H5Oget_native_info), which are "
            "fewer in the newer format.",
        ),
        (
            ("dsets / filters (read)*",),
            "Looks inside: expects that some chunks which were just written are not in the cache any more, since they share one of "
            "its 521 slots, and that reading them meets the corruption of a filter. The history's cache keeps all of them.",
        ),
        (
            ("dsets / dataset access with missing filter*",),
            "Takes deflate out of the library (H5Zunregister) and looks at the size that the chunks have then. The connector has "
            "its own deflate, and stores them compressed.",
        ),
        (
            ("dsets / the next power of 2*",),
            "Expects that a dataset cannot be extended beyond 2^63 chunks, which HDF5's table of cached chunks cannot count "
            "(H5Dint.c). A history can.",
        ),
        (
            ("dsets", "dsets / *"),
            "Look inside: ask H5D__layout_idx_type_test for the chunk index of the native dataset, which is virtual. What such a test "
            "leaves open cannot be created anew by the next ones.",
        ),
        (
            ("links / unlinking external link in dense group*", "links / external link along for the ride*"),
            "Look inside: H5G__is_empty_test counts the messages of the native root group, which has the connector's own "
            "group in it.",
        ),
        (
            ("links / *old-style group*",),
            "Look inside: H5G__has_stab_test, H5G_info_t.storage_type and the native order of links ask for a symbol table. Groups "
            "of files with history are of the newer kind.",
        ),
        (
            ("links / user-defined link callbacks*",),
            "A class of user-defined links must be asked for no other name than one. HDF5 asks it whenever it tells of a link "
            "(H5G__link_to_info), and the connector must know what kind of link it deletes. With the newer group format: the "
            "class of a test before, which failed, is still registered.",
        ),
        (
            ("links", "links / *"),
            "Fails where one of the tests before, whose causes are above and below, has left its file open or its class of "
            "links registered: 'unable to truncate a file which is already open', H5Lis_registered.",
        ),
        (
            (
                "swmr", "swmr / H5Drefresh()--concurrent access*", "swmr / H5Fstart_swmr_write()--concurrent access*",
            ),
            "A reader that has the file open sees later flushes of another process. With a history it keeps the state that "
            "it opened (options.md).",
        ),
        (
            (
                "swmr / H5Fset_metadata_read_retry_info()*",
                "swmr / H5Fstart_swmr_write() when creating/opening a file*",
                "swmr / H5Fstart_swmr_write()--stress object header messages*",
            ),
            "Look inside: the retries of the native file, the chunk index of the native dataset, the places of messages in "
            "its object header.",
        ),
        (
            ("swmr / H5Fstart_swmr_write() on failure conditions for without latest format*",),
            "Expects that a file which was made with the oldest format cannot be opened for SWMR. Files with history are of "
            "the newer format, and can.",
        ),
        (
            ("swmr / File open with different comb*", "swmr / File locking*"),
            "Expect that a reader is refused beside a writer, and the other way round, by HDF5's own lock on the file. Readers of "
            "a file with history may open it at any moment, and see the newest commit (promises.md).",
        ),
        (
            ("swmr / *",),
            "Fails where a test before, whose cause is above, has left its file open: 'unable to truncate a file which is "
            "already open'.",
        ),
    ],
    "h5py": [
        (
            "test_file::test_reproducible_file",
            "Writes two files alike, a second apart, and compares them byte for byte. A history tells when each version was "
            "made. Nothing of libhdf5: the purpose of h5cow.",
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
    "pandas": [
        (
            "test_store::test_no_track_times",
            "Writes the same table into two files, a second apart, and compares them byte for byte. A history tells when each version "
            "was made. Nothing of libhdf5: the purpose of h5cow.",
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
    "h5py with HDF5 2": [
        (
            "test_file::test_reproducible_file",
            "Expects two files that are made one second after the other to be the same, byte for byte. A file with history says "
            "of each version when it was made. Nothing of libhdf5: the purpose of h5cow.",
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
that passes natively must pass with the connector. Written by `./dev test --suites --write-docs`, what is from a wheel by
`./dev test --wheel --write-docs`, and "h5py with HDF5 2" by `./dev test --hdf5 2 --write-docs`; do not edit.

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
    for patterns, why in EXCEPTIONS.get((suite or "").partition(",")[0], ()):
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
