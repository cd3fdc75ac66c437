"""Everything that a file brought along under /_versioned_data passes one door, connector/layout/: no other source reads it.

A search of the sources. Calls that read elements or attributes, and the paths of the tables, may stand only where they are
listed here, with the reason.
"""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
READS = (
    r"H5Aread|H5Dread|H5Dread_chunk|cow_library_read_chunk|H5Dread_multi|H5Dvlen_get_buf_size|H5Tvlen\w*|H5VLattr_read|H5VLdataset_read|"
    r"cow_native_read|cow_native_dataset_read|cow_native_chunk_read|cow_native_attribute_get|cow_native_table_over|cow_native_table_dataset"
)
THE_CALLS_THEMSELVES = "makes these calls for others, which are in this list"
THE_APPLICATION = "the application's own call, with its types and its buffer"
BY_PUBLIC_CALLS = "trees of objects by public HDF5 calls, through the connector or of plain files, in boxes of bounded size"
MAY_READ = {
    "connector/layout/layout.c": "the door",
    "connector/layout/optional.c": "the door",
    "connector/layout/log.c": "the door",
    "connector/library/bind.c": THE_CALLS_THEMSELVES,
    "connector/native/attribute.c": THE_CALLS_THEMSELVES + "; attributes of snapshots are as large as HDF5 checks them to be",
    "connector/native/chunks.c": THE_CALLS_THEMSELVES,
    "connector/native/native.c": THE_CALLS_THEMSELVES,
    "connector/native/storage.c": "rows of tables that the door has opened, slots of pools whose shape it has compared",
    "connector/history/copy_elements.c": "elements of the application's datasets, in boxes of bounded size",
    "connector/history/restore_object.c": "datasets of at most a mebibyte, after cow_sum_fits",
    "connector/history/decide.c": "small datasets of head and snapshot, compared up to 64 KiB",
    "connector/history/sums.c": "after cow_layout_elements",
    "connector/io/convert.c": "a scratch file in memory",
    "connector/io/heap.c": "slots whose lengths cow_lengths_check has compared",
    "connector/io/selection_plist.c": "a scratch dataset in memory",
    "connector/io/scratch.c": "a scratch file in memory",
    "connector/import/compare.c": BY_PUBLIC_CALLS,
    "connector/import/values.c": BY_PUBLIC_CALLS,
    "connector/vol/attribute.c": THE_APPLICATION,
    "connector/vol/dataset.c": THE_APPLICATION,
    "connector/vol/sources.c": THE_APPLICATION,
    "cli/check.c": "after cow_layout_values or cow_layout_elements",
    "cli/check_slots.c": "stored chunks not larger than the file, elements after cow_lengths_check",
    "cli/cp_references.c": "cp: attributes through the connector, as large as HDF5 checks them to be",
    "cli/diff_stored.c": "diff: chunks as they are stored, through the connector, into as many bytes as are told, and no more than 64 MiB",
    "cli/diff_elements.c": "diff: attributes through the connector, as large as HDF5 checks them to be",
    "cli/diff_tree.c": "diff: attributes through the connector, as large as HDF5 checks them to be",
    "cli/hash.c": "hash: attributes through the connector, as large as HDF5 checks them to be",
    "cli/hash_values.c": "hash: makes types in memory",
    "cli/object.c": "diff, hash, bisect: elements through the connector, in boxes of a chunk or of bounded size",
    "cli/report_pictures.c": "report: at most 192 x 192 numbers through the connector",
    "cli/salvage_data.c": "recover: elements in boxes of a chunk, or after cow_layout_elements",
    "cli/salvage_state.c": "recover: the first 8 bytes of what may be the index",
    "cli/salvage_tree.c": "recover: attributes, as large as HDF5 checks them to be",
}
# Tables and pools: opened by the door only.
TABLES = r'COW_PATH_(?:LOG|SNAPSHOTS|DATASETS|POOLS|INDEX|INCOMPLETE|OPERATIONS)\b|COW_PATH_(?:RAW|SLOTS) "/|COW_ROOT "/%s"'
# A path below /_versioned_data that is put together by hand.
BY_HAND = r'_versioned_data/|COW_(?:ROOT|GROUP) "/'
MAY_NAME = {
    "cli/tables.c": "names for messages; the door opens",
    "cli/check_index.c": "the source that a view must name",
    "cli/salvage_state.c": "recover puts a group together again from what it finds by its shape",
}


def code(path):
    """Without comments."""
    return re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.S)


def sources():
    for folder in ("connector", "cli"):
        for path in sorted((ROOT / folder).rglob("*.[ch]")):
            yield str(path.relative_to(ROOT)), code(path)


def test_only_the_door_and_named_exceptions_read_what_a_file_brought_along():
    found = {name for name, text in sources() if name.endswith(".c") and re.search(rf"\b(?:{READS})\s*\(", text)}
    assert found - set(MAY_READ) == set(), "read it through connector/layout/layout.h, or name the exception and its reason"
    assert set(MAY_READ) - found == set(), "exceptions that are none any more"


def test_only_the_door_opens_tables_and_pools():
    found = {name for name, text in sources() if re.search(TABLES, text) and not name.startswith("connector/layout/")}
    assert found - set(MAY_NAME) == set(), "open it through connector/layout/layout.h"
    assert set(MAY_NAME) - found == set(), "exceptions that are none any more"


def test_paths_of_the_history_are_spelt_in_one_file():
    found = {name for name, text in sources() if re.search(BY_HAND, text) and not name.startswith("connector/layout/")}
    assert found == set(), "connector/layout/layout.h has COW_PATH_..."


def test_the_door_is_what_its_header_says():
    """Each function that opens compares type and size before it gives anything out."""
    layout = "".join(code(ROOT / f"connector/layout/{name}.c") for name in ("layout", "log", "optional"))
    for function, checks in {
        "cow_layout_table_open_at": ["cow_layout_hard", "check_rows", "check_of[kind]", "cow_layout_room"],
        "check_table": ["check_rows", "cow_layout_stored"],
        "check_rows": ["H5Tequal"],
        "log_open": ["cow_layout_hard", "log_extent"],
        "check_log": ["wrong_member", "cow_layout_stored"],
        "log_extent": ["H5Sget_simple_extent_ndims", "cow_layout_room"],
        "cow_layout_log_read_many": ["log_open", "check_log"],
        "cow_layout_log_write": ["log_open", "check_log"],
        "read_batch": ["cow_layout_texts"],
        "open_table": ["cow_layout_table_open"],
        "cow_layout_lacks_open": ["open_table"],
        "cow_layout_operations_open": ["open_table"],
        "cow_layout_operations_rows": ["cow_native_table_dataset", "cow_layout_texts"],
        "cow_layout_lacks_rows": ["cow_native_table_dataset", "cow_layout_texts"],
        "cow_layout_elements": ["cow_layout_most", "cow_native_file_size", "most_elements"],
        "cow_layout_raw_open": ["cow_layout_hard"],
        "cow_layout_version": ["cow_layout_hard"],
        "cow_layout_room": ["cow_native_file_size"],
        "cow_layout_stored": ["not_a_list"],
    }.items():
        body = re.search(rf"\b{function}\([^;{{]*\)\n{{\n(.*?)\n}}\n", layout, re.S)
        assert body, function
        for check in checks:
            assert check in body[1], (function, check)


def test_elements_are_reclaimed_in_one_dimension():
    """HDF5 1.14.5 divides by zero where it reclaims elements of an extent of 32 dimensions: cow_reclaim does not."""
    may = {
        "connector/native/datatype.c",  # cow_reclaim itself
        "connector/history/values.c",  # these make the extent, of one dimension or none
        "connector/io/heap.c",
        "connector/io/memory_size.c",
    }
    files = [path for folder in ("connector", "cli", "api") for path in (ROOT / folder).rglob("*.c")]
    found = {str(path.relative_to(ROOT)) for path in files if re.search(r"\bH5(Treclaim|Dvlen_reclaim)\(", path.read_text())}
    assert found == may
