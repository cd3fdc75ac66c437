"""Writes docs/data-model.md: every kind of object x every operation, from what test_model itself says (--list).

usage: data_model.py TEST_MODEL    writes the page; test_data_model.py fails where page and tests differ
"""

import pathlib
import subprocess
import sys

import filter_plugins

PAGE = pathlib.Path(__file__).resolve().parent.parent / "docs/data-model.md"

HEAD = """# The data model

<!-- written by test/data_model.py from the tests; do not edit -->

Every kind of object in an HDF5 file, and what is tested about it. Each cell is the last part of a test's name, which
begins with the name in the first column: `test_model "datasets::chunked/modify"` runs one row and shows that cell.
Native HDF5 is the judge: the same calls are made on a plain file, which is kept after each step, and everything that can
be read, asked and listed must be the same

* in the head through h5cow, before and after the file is closed,
* in every version, as `FILE@N` and with `at=N` (column *old version*),
* in the head and in every version by HDF5 without h5cow (column *without h5cow*).

*Copy* is `H5Ocopy` within the file, and from the head and from a version into a file with history and into a plain one,
and from a plain file into one with history; of a link it is `H5Lcopy`. *Move* is `H5Lmove`, of attributes `H5Arename`.
*Delete* is followed by creating the same name again. *List* is by all calls that list: visits and iterations by name and
by creation order, names by number. Changes of data that lie elsewhere make no version.
"""

# What is tested elsewhere: title, [(what, "file::test")].
ELSEWHERE = [
    (
        "References in versions",
        [
            ("objects, regions and attributes, of 1.8 and 1.12, in all places", "test_references.c::test_references_of_every_kind_lead_to_objects_of_their_version"),
            ("to deleted objects", "test_references.c::test_references_to_deleted_objects_lead_nowhere"),
            ("after the file was created anew", "test_references.c::test_after_recreation_references_of_old_versions_still_lead"),
            ("into other files", "test_references.c::test_references_into_other_files_are_kept_in_every_version"),
        ],
    ),
    (
        "Types in every place",
        [("all types of the table in small, compact, scalar, chunked and contiguous datasets and attributes, named and not", "test_types.c::test_values_and_types_of_every_class_in_head_and_versions")],
    ),
    (
        "Links and groups",
        [
            ("100,000 links in one group", "test_files.c::test_group_of_a_hundred_thousand_links"),
            ("copying a group of very many links", "test_files.c::test_copy_of_a_group_of_many_ordered_links"),
            ("listings of the root, which hide the history", "test_vol.c::test_root_listings_are_those_of_a_file_without_history"),
            ("user-defined links whose class is not registered", "test_vol.c::test_user_defined_links_are_followed_and_kept"),
            ("writing through an external link", "test_vol.c::test_external_link_to_a_file_with_history_is_written_with_history"),
            ("mounts", "test_files.c::test_mounts_show_what_native_hdf5_shows"),
            ("writing through a mount", "test_vol.c::test_mounted_file_with_history_is_written_with_history"),
            ("old versions cannot be mounted: HDF5 would show the head there", "test_files.c::test_mounting_an_old_version_is_refused"),
        ],
    ),
    (
        "Copies",
        [
            ("within a file: no chunk is stored again", "test_copies.c::test_copy_within_a_file_costs_no_chunk_data"),
            ("into another file with history: each chunk once", "test_copies.c::test_copy_into_another_file_with_history_is_deduplicated"),
            ("out of a plain file: with a history of their own", "test_copies.c::test_copies_out_of_a_plain_file_are_versioned"),
            ("out of a plain file, of chunks that nobody can read: an error", "test_copies.c::test_copy_of_chunks_that_cannot_be_read_fails_and_leaves_nothing"),
            ("out of a plain file, of what is under a mount", "test_copies.c::test_copy_of_what_is_under_a_mount"),
            ("of named types, after another opening was closed", "test_copies.c::test_copy_after_another_opening_was_closed"),
            ("sparse datasets: chunks that are stored", "test_copies.c::test_version_of_a_sparse_copy_is_sparse"),
            ("chunks larger than a maximum", "test_copies.c::test_copy_of_chunks_larger_than_the_maximum"),
            ("references, within a file", "test_references.c::test_references_copied_within_the_file_still_lead"),
            ("references, into another file: empty, as HDF5 makes them", "test_references.c::test_references_copied_into_another_file_are_empty"),
            ("`H5O_COPY_EXPAND_REFERENCE_FLAG`: what references lead to is copied along, out of versions as well", "test_references.c::test_copies_of_what_references_lead_to"),
        ],
    ),
    (
        "Virtual datasets",
        [("sources with changes that are not committed", "test_vol.c::test_user_virtual_dataset_shows_what_is_not_committed")],
    ),
    (
        "Properties and calls of datasets",
        [
            ("more than 2^64 elements: made and opened again", "test_properties.c::test_a_dataset_of_more_than_2_64_elements_is_made_and_opened_again"),
            ("more than 2^64 elements: far corners written, read, resized, in versions", "test_properties.c::test_far_corners_of_a_huge_dataset_are_written_and_read"),
            ("filters of all kinds on all layouts and types: made or refused", "test_properties.c::test_filters_are_refused_where_native_refuses_them"),
            ("`can_apply` and `set_local`: called as often as natively, for the program's datasets alone", "test_filters.c::test_filters_are_asked_as_often_as_natively"),
            ("`can_apply` for strings of variable length and references, by when they are allocated and filled", "test_filters.c::test_filters_of_heaps_are_asked_as_often_as_natively"),
            ("`can_apply` and `set_local` that refuse, always or once", "test_filters.c::test_a_filter_that_refuses_is_asked_once"),
            ("`set_local` that changes parameters which it has computed", "test_filters.c::test_parameters_are_computed_from_those_that_are_given"),
            ("filters that refuse chunks, always or once, give sizes that cannot be, call HDF5; datasets and files closed in every order", "test_filters.c::test_a_chunk_that_a_filter_refuses_is_lost_alone"),
            ("the same with `H5Idec_ref`, `H5Oclose`, `H5close` and the end of the program, after which HDF5 alone crashes", "test_filters.c::test_no_close_that_fails_crashes"),
            ("filters that are missing when data is read and written", "test_filters.c::test_a_filter_that_is_missing"),
            ("optional filters that fail", "test_properties.c::test_optional_filters_that_fail_are_left_out"),
            ("mandatory filters that fail, `H5Pset_filter_callback`", "test_properties.c::test_mandatory_filters_that_fail_ask_the_callback"),
            ("filters that fail to decode, `H5Pset_filter_callback`", "test_properties.c::test_filters_that_fail_to_decode_ask_the_callback"),
            ("`H5Pset_edc_check(H5Z_DISABLE_EDC)`: damage is read", "test_properties.c::test_damage_is_read_when_error_detection_is_off"),
            ("`H5Zunregister` between calls", "test_properties.c::test_filters_that_go_away"),
            ("`H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS`", "test_properties.c::test_edge_chunks_are_not_filtered_when_asked"),
            ("`H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS`: copies", "test_properties.c::test_copies_of_edge_chunks_that_are_not_filtered"),
            ("`H5S_PLIST`", "test_properties.c::test_selections_in_the_transfer_list"),
            ("layout, allocation time, fill time and fill value", "test_properties.c::test_allocation_and_fill"),
            ("access properties, read back", "test_properties.c::test_access_properties"),
            ("transfer properties, read back", "test_properties.c::test_transfer_properties"),
            ("`H5Pset_vlen_mem_manager`", "test_properties.c::test_memory_of_variable_length_values"),
            ("what a transfer list says, of elements in heaps", "test_callbacks.c::test_conversions_and_memory_managers_are_asked_for_what_lies_in_heaps"),
            ("what a transfer list says, of several datasets in one call", "test_callbacks.c::test_a_data_transform_is_that_of_the_programs_elements_alone"),
            ("conversions, memory managers and filters that read other datasets", "test_callbacks.c::test_a_filter_may_read_another_dataset"),
            ("creation properties that cannot be", "test_properties.c::test_creations_that_cannot_be"),
            ("calls on chunks", "test_properties.c::test_calls_on_chunks"),
        ],
    ),
    (
        "Objects and files",
        [
            ("object times: the head's are HDF5's; a version's are those of making the version, and stay", "test_files.c::test_times_of_objects_stay_those_of_their_version"),
            ("user block: the program's own, without history", "test_files.c::test_user_block_belongs_to_the_program"),
            ("creation properties, sizes, counts that a file tells", "test_files.c::test_files_say_of_themselves_what_the_program_asked_for"),
            ("`H5Fget_file_image`", "test_files.c::test_image_of_an_open_file_is_the_file"),
            ("close degree, of one of two openings", "test_files.c::test_close_degrees_of_two_openings"),
            ("`H5Freopen`", "test_files.c::test_reopened_file_is_the_same_file"),
            ("one file under two names", "test_accidents.py::test_two_names_in_one_process_are_one_file"),
            ("library version bounds, alignment, caches, close degree", "test_files.c::test_access_properties_leave_history_right"),
            ("page buffer", "test_files.c::test_page_buffer"),
            ("other file drivers: new files are plain, files with history are read; written where the driver does what sec2 does, or works in memory ([access.md](access.md))", "test_files.c::test_other_drivers_make_plain_files_and_open_histories"),
            ("creating over a file with history", "test_vol.c::test_truncate_keeps_history"),
            ("a plain file that is imported", "test_import.py::test_everything_comes_along"),
        ],
    ),
]

# What a program can tell from native HDF5: (what, why).
DIFFERENT = [
    ("A dataset of more than 2^64 elements, read by HDF5 without h5cow, is fill value wherever it was written", "HDF5's virtual datasets count their elements with 64 bits. Through h5cow it can be written and read, which native HDF5 often refuses; a union of hyperslabs that are further apart than 2^64 elements is refused (natively it never ends)."),
    ("Early allocation reserves nothing on the disk", "What `H5Dget_storage_size` and `H5Dget_space_status` tell is as natively, but equal chunks are stored once and contiguous data when it is written: a full disk is met when data is committed and not when the dataset is created. Contiguous data that was never written, without fill value, leaves the reader's memory alone."),
    ("`H5Dget_offset` tells an address only where the whole of a contiguous dataset is one chunk of the pool", "Larger ones are cut into chunks."),
    ("A filter callback that goes on is asked when the elements are written", "Natively it is asked when the chunk leaves HDF5's cache, which may be in a call without the callback, and that then fails."),
    ("`can_apply` of filters for elements that have parts elsewhere (strings of variable length, sequences, references of HDF5 1.12)", "may be called once more in a session that creates such a dataset where an older session made one like it, and earlier, when a dataset that was allocated early grows. HDF5 itself writes these elements, and asks before it writes what it has opened."),
    ("A chunk that a filter refuses is told by `H5Dflush`, or by the `H5Dclose` that closes the dataset, and keeps what it had", "by `H5Dwrite` where the program gave the dataset a chunk cache that does not hold a chunk. Natively `H5Dwrite` tells it also of chunks that are larger than the 1 MiB of the default cache. Shuffle, deflate, fletcher32, LZF and Blosc run when data is committed, and are told then."),
    ("Reading with `H5Z_DISABLE_EDC` or a filter callback", "compares no checksum, nor h5cow's own: what is read is what stands in the file. All other readers are told of damage as before. A partial write with it makes the chunk whole again with what was read."),
    ("`H5Dread_chunk` of a damaged chunk is an error", "unless the transfer list says `H5Z_DISABLE_EDC`: then it gives the bytes, as natively always."),
    ("A data transform (`H5Pset_data_transform`) and a chunk that is missing, beside others that are stored", "the fill value is transformed, as with HDF5 1.14; HDF5 2 natively leaves it as it is."),
    ("`H5Dwrite_chunk` refuses bytes that the dataset's filters cannot decode, or that have not a chunk's size", "Natively they are stored, and reading them fails. A chunk is stored by the hash of its elements and with a checksum, so these have to be known."),
    ("`H5Dread_multi` and `H5Dwrite_multi` of one dataset twice, with a chunk that both touch", "are done one after the other. Natively that is refused when the chunk has its place in the file."),
    ("`H5Dwrite` of points that name an element of variable length, or a new reference, twice", "writes what the last of them says. Natively it fails where what the element held was alone in its heap, and HDF5 1.14.5 may crash later in the program."),
    ("Reading a version of a dataset without a fill value, all of whose chunks were cut off, or before anything was written to it", "succeeds when something had been written to the dataset by the newest state, and leaves the reader's memory alone; natively it is an error until something was written."),
    ("`H5Pget_no_selection_io_cause` and `H5Pget_actual_selection_io_mode`", "tell what is usual natively for the layout: h5cow never uses HDF5's selection I/O, and never a page or sieve buffer for such data."),
    ("`H5Dget_access_plist` of a dataset that was opened with a prefix for virtual sources or external files", "may tell that prefix until the next commit, for h5cow keeps a handle of its own."),
    ("H5S_PLIST in an extent of more than 2^44 elements", "is refused: no public call tells that selection, so it is found out with as much address space."),
    ("A function of the program that HDF5 calls while it moves elements of variable length (a conversion, its callback, a memory manager) cannot move others of the same type and chunks in that file", "Such datasets share a pool, and HDF5 1.14.5 cannot move other elements of one dataset in the middle of that. `H5Fflush` there, and in a filter, commits nothing: the next commit does."),
    ("Chunks are listed in row-major order", "HDF5 1.14.5 lists the chunks of some indexes at places of others (`H5D__earray_idx_iterate_cb`), and forgets the filter mask of a chunk that is written again with as many bytes. Natively, reading a hole can store a chunk when the dataset shrinks afterwards."),
]


PLUGINS = """
## Filters that are plugins

`test_filter_plugins.py` lets a program create a dataset, change some elements and append to it, natively and through h5cow, with delta
chunks of 16 bytes and more and without them. What is read must be the same after each session: in each version, in the head by
HDF5 without h5cow, after `h5cow gc --compact` and in an exported file. ✓: that is so. *Not made*, *not written*: the filter refuses such
elements, natively and through h5cow alike; native HDF5 crashes afterwards where h5py closes such a dataset, h5cow does not. *Ends the
program*: the filter calls `exit` in the middle of a write. All else of the session is committed ([promises.md](promises.md)).

{table}"""


def table(program):
    """Columns, and for each row its name, its note, and for each column why there is no such operation, or ""."""
    listed = subprocess.run([program, "--list"], capture_output=True, text=True, check=True).stdout.splitlines()
    lines = [line.split("\t") for line in listed]
    return lines[0][2:], [(line[0], line[1], line[2:]) for line in lines[1:]]


def page(program):
    columns, rows = table(program)
    text = HEAD
    for family in dict.fromkeys(name.partition("::")[0] for name, _, _ in rows):
        text += f"\n## {family[0].upper()}{family[1:]}\n\n| test | {' | '.join(columns)} |\n|{'---|' * (len(columns) + 1)}\n"
        notes = ""
        for name, note, cells in rows:
            if name.partition("::")[0] != family:
                continue
            shown = [f"none: {why}" if why else f"`/{column}`" for column, why in zip(columns, cells, strict=True)]
            text += f"| `{name}` | {' | '.join(shown)} |\n"
            if note:
                notes += f"* `{name}`: {note}\n"
        text += f"\n{notes}" if notes else ""
    text += "\n## Tested elsewhere\n\n| | what | test |\n|---|---|---|\n"
    for title, tests in ELSEWHERE:
        for what, test in tests:
            text += f"| {title} | {what} | `{test}` |\n"
    text += PLUGINS.format(table=filter_plugins.table())
    text += "\n## What differs from native HDF5\n\n"
    for what, why in DIFFERENT:
        text += f"* {what}: {why}\n"
    return text


if __name__ == "__main__":
    PAGE.write_text(page(sys.argv[1]))
