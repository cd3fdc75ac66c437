"""docs/reader.py, which knows h5cow's files from docs/format.md alone, must see in every version what was written.

A program that knows nothing of versions, this file run as `test_reader.py SCENARIO FILE`, writes through the connector in
a process of its own; it keeps beside it, in numpy, what each version should hold. The tests run without the connector.
"""

import hashlib
import os
import pathlib
import pickle
import re
import subprocess
import sys

import h5py
import numpy as np
import pytest
from conftest import h5cow
from waiting import WAITING

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PLUGIN = ROOT / "build/release/connector"

# ---- the programs: lists of steps, each from opening to closing the file ---------------------------------------------


def full(rank):
    """Rank by rank: written whole, in part, grown, shrunk, grown again."""
    shape, chunk = (20, 13, 7, 5)[:rank], (3, 4, 2, 5)[:rank]
    numbers = np.arange(np.prod(shape), dtype="<i4").reshape(shape)
    larger, smaller = tuple(2 * n + 1 for n in shape), tuple(n // 2 + 1 for n in shape)

    def resized(want, new, fill=-1):
        result = np.full(new, fill, want.dtype)
        both = tuple(slice(0, min(a, b)) for a, b in zip(want.shape, new))
        result[both] = want[both]
        return result

    def create(f, want):
        f.create_dataset("x", data=numbers, chunks=chunk, maxshape=(None,) * rank, fillvalue=-1)
        want["/x"] = numbers.copy()

    def part(f, want):
        box = (slice(2, 11, 3),) + (slice(1, 4),) * (rank - 1)
        f["x"][box] = 1000
        want["/x"][box] = 1000

    def resize(new):
        def step(f, want):
            f["x"].resize(new)
            want["/x"] = resized(want["/x"], new)

        return step

    def corner(f, want):
        f["x"][(-1,) * rank] = 77
        want["/x"][(-1,) * rank] = 77

    return [create, part, resize(larger), corner, resize(smaller), resize(larger), corner, resize((0,) * rank)]


def sparse():
    """Few chunks of very many: several levels of the index."""
    places = [0, 5, 63, 64, 1023, 1024, 70_000, 999_999]

    def create(f, want):
        f.create_dataset("x", (1_000_000,), "<f4", chunks=(10,), maxshape=(None,), fillvalue=2.5)
        want["/x"] = np.full(1_000_000, 2.5, "<f4")

    def write(at):
        def step(f, want):
            f["x"][at] = want["/x"][at] = at + 1

        return step

    def grow(f, want):
        f["x"].resize((3_000_000,))
        f["x"][2_999_999] = 1
        want["/x"] = np.concatenate([want["/x"], np.full(2_000_000, 2.5, "<f4")])
        want["/x"][-1] = 1

    def wide(f, want):
        f.create_dataset("y", (300, 300), ">u2", chunks=(1, 2), maxshape=(300, None))
        f["y"][10:14, 5:90] = 9
        f["y"][299, 299] = 8
        want["/y"] = np.zeros((300, 300), ">u2")
        want["/y"][10:14, 5:90] = 9
        want["/y"][299, 299] = 8

    return [create] + [write(at) for at in places] + [grow, wide]


def contiguous():
    numbers = np.random.default_rng(1).standard_normal((70, 3000))

    def create(f, want):
        f["x"], f["tiny"], f["scalar"] = numbers, np.arange(5), 3.0
        want.update({"/x": numbers.copy(), "/tiny": np.arange(5), "/scalar": np.float64(3.0)})

    def change(f, want):
        f["x"][3:50, 7] = -1
        f["tiny"][2] = 22
        want["/x"][3:50, 7] = -1
        want["/tiny"][2] = 22

    return [create, change]


def compressed():
    options = {
        "gzip": {"compression": "gzip"},
        "shuffle": {"compression": "gzip", "shuffle": True, "fletcher32": True},
        "lzf": {"compression": "lzf"},
    }
    return filtered(options)


def other_filters():
    """Filters that h5cow leaves to HDF5."""
    return filtered({"scaleoffset": {"scaleoffset": 0}})


def filtered(options):
    noise = np.random.default_rng(2).integers(0, 2**60, 30_000, "<i8")

    def create(f, want):
        for name, filters in options.items():
            f.create_dataset(name, data=np.arange(30_000), chunks=(700,), maxshape=(None,), **filters)
            want["/" + name] = np.arange(30_000)

    def change(f, want):
        for name in options:  # half of it does not compress
            f[name][1000:15_000] = want["/" + name][1000:15_000] = noise[1000:15_000]

    return [create, change]


def strings():
    text = h5py.string_dtype()
    words = np.array([b"", b"one", "zwölf".encode(), b"x" * 300] * 40, object)
    ragged = np.empty(50, object)
    ragged[:] = [np.arange(n % 7, dtype="<i2") for n in range(50)]
    record = np.dtype([("n", "<i4"), ("s", text), ("f", "<f8", (2,))])
    records = np.empty(30, record)
    for i in range(30):
        records[i] = (i, b"r" * (i % 5), (i, i / 2))

    def create(f, want):
        f.create_dataset("words", data=words, dtype=text, chunks=(7,), maxshape=(None,))
        f.create_dataset("fixed", data=words.astype("S9"), chunks=(9,))
        f.create_dataset("ragged", data=ragged, dtype=h5py.vlen_dtype("<i2"), chunks=(8,), maxshape=(None,))
        f.create_dataset("records", data=records, chunks=(4,), maxshape=(None,))
        f.create_dataset("empty", (20, 20), text, chunks=(4, 8), maxshape=(None, 20))
        want.update({"/words": words.copy(), "/ragged": ragged.copy(), "/records": records.copy()})
        want.update({"/fixed": words.astype("S9"), "/empty": np.full((20, 20), b"", object)})

    def change(f, want):
        f["words"][3:20] = want["/words"][3:20] = b"changed"
        f["ragged"][11] = want["/ragged"][11] = np.arange(100, dtype="<i2")
        f["records"][7] = want["/records"][7] = (-7, b"seven", (7, 7))
        f["empty"][5, 6] = want["/empty"][5, 6] = b"one"

    def resize(f, want):
        f["words"].resize((90,))
        want["/words"] = want["/words"][:90].copy()
        f["ragged"].resize((53,))
        grown = np.empty(53, object)
        grown[:] = list(want["/ragged"]) + [np.empty(0, "<i2")] * 3
        want["/ragged"] = grown

    return [create, change, resize]


def many():
    """Several datasets, some equal, in groups; hard links; deleted and made again."""
    kinds = {"b": "?", "c": "<c16", "h": "<f2", "big": ">f8", "row": [("a", "<i2"), ("b", ">f8"), ("c", "S3")]}

    def make(kind, n):
        return np.arange(n) % 3 == 0 if kind == "?" else np.arange(n * np.dtype(kind).itemsize, dtype="u1").view(kind)

    def create(f, want):
        for name, kind in kinds.items():
            for group in ("one", "two/deep"):
                f.create_dataset(f"{group}/{name}", data=make(kind, 900), chunks=(100,), maxshape=(None,))
                want[f"/{group}/{name}"] = make(kind, 900)
        f["again"] = f["one/b"]
        want["/again"] = want["/one/b"]

    def change(f, want):
        f["one/b"][:] = True
        want["/one/b"][:] = True
        del f["two/deep/c"], want["/two/deep/c"]
        f.create_dataset("two/deep/h2", data=make("<f2", 900), chunks=(100,), maxshape=(None,))
        want["/two/deep/h2"] = make("<f2", 900)

    def replace(f, want):
        del f["one/row"]
        f.create_dataset("one/row", data=make("<i8", 3000), chunks=(50,))
        want["/one/row"] = make("<i8", 3000)

    return [create, change, replace]


def copied():
    def create(f, want):
        f.create_dataset("x", data=np.arange(10_000.0), chunks=(10,), maxshape=(None,))
        want["/x"] = np.arange(10_000.0)

    def copy(f, want):
        f.copy("x", "y")
        want["/y"] = want["/x"].copy()

    def change(f, want):
        f["y"][5000:5020] = want["/y"][5000:5020] = 1
        f["x"][0] = want["/x"][0] = 2

    return [create, copy, change]


SCENARIOS = {f"rank {rank}": lambda rank=rank: full(rank) for rank in (1, 2, 3, 4)} | {
    program.__name__: program for program in (sparse, contiguous, compressed, other_filters, strings, many, copied)
}


def program(scenario, file):
    want, versions = {}, []
    for step in SCENARIOS[scenario]():
        with h5py.File(file, "a" if versions else "w") as f:
            step(f, want)
        versions.append(pickle.dumps(want))
    pathlib.Path(file + ".pickle").write_bytes(pickle.dumps(versions))


if __name__ == "__main__":
    program(*sys.argv[1:])
    sys.exit()

# ---- the tests -------------------------------------------------------------------------------------------------------

sys.path.insert(0, str(DOCS))
import reader  # noqa: E402
import xxh3  # noqa: E402


def write(scenario, file, options=""):
    environment = {"HDF5_PLUGIN_PATH": str(PLUGIN), **os.environ, "HDF5_VOL_CONNECTOR": f"h5cow {options}".strip()}
    done = subprocess.run(
        [sys.executable, "-B", __file__, scenario, str(file)], env=environment, capture_output=True, text=True, timeout=WAITING
    )
    assert done.returncode == 0, done.stderr
    return [pickle.loads(want) for want in pickle.loads(pathlib.Path(f"{file}.pickle").read_bytes())]


def equal(found, wanted):
    assert found.shape == wanted.shape
    if wanted.dtype.hasobject and wanted.dtype.names is None and wanted.size and isinstance(wanted.flat[0], np.ndarray):
        assert all(np.array_equal(a, b) for a, b in zip(found.flat, wanted.flat))
    else:
        assert found.dtype.newbyteorder("=") == wanted.dtype.newbyteorder("=")  # pickle does not keep the byte order
        if wanted.dtype.hasobject:
            assert str(found.tolist()) == str(wanted.tolist())
        else:
            assert found.tobytes() == wanted.astype(found.dtype).tobytes()


def compare(file, wanted, forgotten=()):
    history = reader.History(file)
    versions = [row["name"] for row in history.versions()]
    assert versions == [str(n + 1) for n in range(len(wanted))]
    assert [row["name"] for row in history.versions() if row["open"] == reader.FORGOTTEN] == list(forgotten)
    for version, want in [*zip(versions, wanted), (None, wanted[-1])]:
        if version in forgotten:
            with pytest.raises(KeyError, match="forgotten"):
                history.datasets(version)
            continue
        assert history.datasets(version) == sorted(want)
        for path, values in want.items():
            equal(history.read(version, path), values)


PIECES = ["pieces=off", "pieces=16"]  # the latter cuts these small chunks too


@pytest.mark.parametrize("pieces", PIECES)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_reader_sees_every_version(scenario, pieces, tmp_path):
    compare(tmp_path / "x.h5", write(scenario, tmp_path / "x.h5", pieces))
    h5cow("verify", tmp_path / "x.h5")


@pytest.mark.parametrize("option", ["gzip", "lzf", "blosc:zstd"])
def test_reader_sees_every_version_that_h5cow_compressed(option, tmp_path):
    if option.startswith("blosc"):
        pytest.importorskip("tables")  # registers the filter
    compare(tmp_path / "x.h5", write("contiguous", tmp_path / "x.h5", f"compress={option};chunk=16K"))


@pytest.mark.parametrize("pieces", PIECES)
@pytest.mark.parametrize("compact", [False, True])
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_reader_sees_every_version_that_was_not_forgotten(scenario, compact, pieces, tmp_path):
    file = tmp_path / "x.h5"
    wanted = write(scenario, file, pieces)
    gone = [str(n) for n in range(1, len(wanted)) if n != 2]
    h5cow("forget", "--gc", file, *gone)
    if compact:
        h5cow("gc", "--compact", file)
    h5cow("verify", file)
    compare(file, wanted, gone)


def test_reader_lists_forgotten_versions_and_a_later_one_of_the_same_name(tmp_path):
    file = tmp_path / "x.h5"
    wanted = write("rank 1", file)
    h5cow("rename", f"{file}@1", "raw")
    h5cow("forget", file, "raw")
    listed = subprocess.run([sys.executable, DOCS / "reader.py", file], capture_output=True, text=True, check=True).stdout
    names = ["raw (forgotten)", *map(str, range(2, len(wanted) + 1))]
    assert [line.split("\t")[0] for line in listed.splitlines()] == names
    done = subprocess.run([sys.executable, DOCS / "reader.py", file, "raw"], capture_output=True, text=True)
    assert done.returncode == 1 and "version 'raw' is forgotten" in done.stderr
    h5cow("rename", f"{file}@2", "raw")
    equal(reader.History(file).read("raw", "/x"), wanted[1]["/x"])


def test_reader_finds_a_version_by_tag(tmp_path):
    wanted = write("rank 1", tmp_path / "x.h5")
    with h5py.File(tmp_path / "x.h5", "r+") as f:
        f["/_versioned_data/tags/first"] = h5py.SoftLink("/_versioned_data/versions/1")
    equal(reader.History(tmp_path / "x.h5").read("first", "/x"), wanted[0]["/x"])


def test_reader_refuses_a_file_without_history(tmp_path):
    h5py.File(tmp_path / "x.h5", "w").close()
    with pytest.raises(ValueError, match="no history"):
        reader.History(tmp_path / "x.h5")


# ---- damage ----------------------------------------------------------------------------------------------------------


class Bytes:
    """Where in the file the rows of a dataset are, so that tests can change them behind HDF5's back."""

    def __init__(self, file, path):
        self.file = file
        with h5py.File(file, "r") as f:
            dataset = f[path]
            self.row = dataset.id.get_type().get_size() * int(np.prod(dataset.shape[1:]))
            self.rows = dataset.chunks[0]
            count = dataset.id.get_num_chunks()
            chunks = [dataset.id.get_chunk_info(i) for i in range(count)]
            self.address = {c.chunk_offset[0] // self.rows: c.byte_offset for c in chunks}

    def flip(self, row, byte=0):
        place = self.address[row // self.rows] + row % self.rows * self.row + byte
        with open(self.file, "r+b") as f:
            f.seek(place)
            before = f.read(1)[0]
            f.seek(place)
            f.write(bytes([before ^ 4]))


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    file = tmp_path_factory.mktemp("reader") / "x.h5"
    return write("rank 2", file), file.read_bytes()


@pytest.fixture
def file(written, tmp_path):
    (tmp_path / "x.h5").write_bytes(written[1])
    return tmp_path / "x.h5"


def root_of(file, version):
    history = reader.History(file)
    return history.root_of(history.top(version)["x"])


def test_reader_refuses_every_flipped_byte_of_a_root_record(file):
    offset, index = root_of(file, "1"), Bytes(file, "/_versioned_data/index")
    size = 6 + xxh3.word(reader.History(file).log, offset + 4, 2) + 8
    for byte in range(size):
        index.flip(offset + byte)
        with pytest.raises(reader.Damaged):
            reader.History(file).read("1", "/x")
        index.flip(offset + byte)
    reader.History(file).read("1", "/x")


def test_reader_refuses_every_flipped_byte_of_a_leaf(file):
    history = reader.History(file)
    root = history.root(root_of(file, "1"))
    offset, level = root.top, root.level
    while level:  # the first child is enough
        grid = reader.Grid(root.chunk, root.maximum)
        _, p = history.record(offset, [reader.INNER])
        for _ in range(1 + len(root.chunk)):
            p.number()
        p.byte(), p.byte()
        coded = p.number()
        offset += -(coded >> 1) - 1 if coded & 1 else coded >> 1
        level -= 1
    index = Bytes(file, "/_versioned_data/index")
    for byte in range(6 + xxh3.word(history.log, offset + 4, 2) + 8):
        index.flip(offset + byte)
        with pytest.raises(reader.Damaged):
            reader.History(file).read("1", "/x")
        index.flip(offset + byte)
    reader.History(file).read("1", "/x")


def test_damage_of_a_later_version_leaves_the_earlier_ones(file, written):
    offset, index = root_of(file, "4"), Bytes(file, "/_versioned_data/index")
    index.flip(offset + 8)
    with pytest.raises(reader.Damaged, match="checksum"):
        reader.History(file).read("4", "/x")
    for version in (1, 2, 3):
        equal(reader.History(file).read(str(version), "/x"), written[0][version - 1]["/x"])


def test_reader_refuses_a_damaged_chunk_in_the_versions_that_have_it(file, written):
    history = reader.History(file)
    root = {v: history.root(root_of(file, v)) for v in ("1", "2")}
    slots = {
        v: {slot for _, slot in history.slots(reader.Grid(r.chunk, r.maximum), r.pool, r.top, r.level, [0, 0])}
        for v, r in root.items()
    }
    new = min(slots["2"] - slots["1"])
    Bytes(file, f"/_versioned_data/raw/{root['1'].pool}").flip(new * root["1"].chunk[0], 1)
    equal(reader.History(file).read("1", "/x"), written[0][0]["/x"])
    with pytest.raises(reader.Damaged, match=f"slot {new} .*checksum"):
        reader.History(file).read("2", "/x")


@pytest.mark.parametrize("byte, what", [(0, "hash"), (31, "hash"), (32, "checksum"), (39, "checksum"), (40, "hash")])
def test_reader_refuses_a_damaged_row_of_the_slot_table(file, byte, what):
    pool = reader.History(file).root(root_of(file, "1")).pool
    Bytes(file, f"/_versioned_data/slots/{pool}").flip(0, byte)
    with pytest.raises(reader.Damaged, match=f"slot 0 .*its {what} differs"):
        reader.History(file).read("1", "/x")


def test_reader_refuses_a_damaged_compressed_chunk(tmp_path):
    file = tmp_path / "x.h5"
    write("compressed", file)
    history = reader.History(file)
    pools = {path: history.root(history.root_of(history.top("1")[path.strip("/")])).pool for path in history.datasets("1")}
    for path, pool in pools.items():
        chunk = history.file[f"/_versioned_data/raw/{pool}"].id.get_chunk_info(0)
        with open(file, "r+b") as f:
            f.seek(chunk.byte_offset + chunk.size // 2)
            byte = f.read(1)[0]
            f.seek(chunk.byte_offset + chunk.size // 2)
            f.write(bytes([byte ^ 16]))
        with pytest.raises(reader.Damaged):
            reader.History(file).read("1", path)


def test_reader_refuses_a_damaged_string(tmp_path):
    file = tmp_path / "x.h5"
    write("strings", file)
    content = file.read_bytes()
    at = content.index("zwölf".encode())
    while at >= 0:
        content = content[:at] + b"Z" + content[at + 1 :]
        at = content.find("zwölf".encode())
    file.write_bytes(content)
    with pytest.raises(reader.Damaged, match="checksum"):
        reader.History(file).read("1", "/words")


# ---- the document ----------------------------------------------------------------------------------------------------

FORMAT = (DOCS / "format.md").read_text()


def table(heading):
    """Rows of the first table behind a heading of format.md, cells without backticks."""
    rows = re.search(rf"^#+ {heading}\n.*?\n\|[^\n]*\n\|[-|: ]*\n((?:\|[^\n]*\n)+)", FORMAT, re.S | re.M).group(1)
    return [[cell.strip().replace("`", "") for cell in row.strip("|").split("|")] for row in rows.splitlines()]


def test_checksums_of_the_document():
    rows = table("Checksum")
    assert len(rows) >= 8
    for size, checksum in rows:
        data = bytes((7 * i + i // 256) % 256 for i in range(int(size)))
        assert f"{xxh3.xxh3(data):016x}" == checksum


def test_hashes_of_the_document():
    rows = table("Hash")
    assert len(rows) >= 5
    for _, values, dtype, digest in rows:
        values = np.array(eval(values), object if dtype == "text" else dtype)
        kind = h5py.string_dtype() if dtype == "text" else values.dtype
        content = b"".join(reader.content(v, kind, False) for v in values.flat)
        assert hashlib.sha256(content + str(values.shape).encode()).hexdigest() == digest


def test_grids_of_the_document():
    rows = table("Examples of grids")
    assert len(rows) >= 5
    for chunk, maximum, *levels in rows:
        maximum = [reader.UNLIMITED if m == "-" else int(m) for m in maximum.split()]
        grid = reader.Grid([int(c) for c in chunk.split()], maximum)
        for level, split in enumerate(levels):
            assert grid.level(level)[1] == [int(n) for n in split.split()]


def test_records_of_the_document():
    text = re.search(r"^#+ An example of an index log\n.*?```\n(.*?)```", FORMAT, re.S | re.M).group(1)
    log = bytes.fromhex("".join(re.split("  +", line)[1] for line in text.splitlines() if line))
    history = reader.History.__new__(reader.History)
    history.log = log
    offset = log.rindex(b"cN")
    root = history.root(offset)
    slots = list(history.slots(reader.Grid(root.chunk, root.maximum), root.pool, root.top, root.level, [0] * len(root.chunk)))
    assert (root.extent, root.maximum, root.chunk, root.chunks) == ((900, 20), (reader.UNLIMITED, 20), (5, 10), len(slots))
    assert slots[:3] + slots[-1:] == [([0, 0], 7), ([1, 0], 8), ([2, 0], 9), ([179, 1], 3)]
