"""The option compress=: a program that asks for no filters sees its datasets as HDF5 alone would show them, chunk by chunk, and they take less
room in the file."""

import sys

import pytest

SETTINGS = ["gzip", "gzip:9:none", "lzf", "lzf:none", "blosc:blosclz", "blosc:lz4", "blosc:lz4:9:bit", "blosc:lz4hc", "blosc:zlib:1", "blosc:zstd:3:bit"]
MAKE = """
import h5py, numpy as np, os, sys
smooth = np.arange(100000)
with h5py.File('a.h5', 'w') as f:
    f.create_dataset('i4', data=smooth.astype('i4'), chunks=(7000,))
    f.create_dataset('f8', data=(smooth // 10).astype('>f8').reshape(250, 400), chunks=(100, 90), maxshape=(None, 400))
    f.create_dataset('pairs', data=np.repeat(smooth[:30000], 3).astype('i4').view([('a', 'i4'), ('b', 'i4'), ('c', 'i4')]), chunks=(4000,))
    f.create_dataset('arrays', (5000,), h5py.h5t.array_create(h5py.h5t.STD_I32LE, (5,)).dtype, chunks=(900,))[...] = np.arange(25000).reshape(5000, 5)
    f.create_dataset('bytes', data=(smooth % 50).astype('u1'), chunks=(20000,))
    f.create_dataset('texts', data=np.char.mod('text %06d', smooth[:8000]).astype('S11'), chunks=(1000,))
    f.create_dataset('own', data=smooth.astype('i4'), chunks=(7000,), compression='gzip')
    f.create_dataset('noise', data=np.random.default_rng(5).integers(0, 256, 90000, 'u1'), chunks=(30000,))
    f.create_dataset('early', (3000, 3), 'i8', chunks=(1000, 2), fillvalue=4, dcpl=(lambda p: p.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY) or p)(h5py.h5p.create(h5py.h5p.DATASET_CREATE)))
    f.create_dataset('strings', data=['a', 'bcd'] * 2000, chunks=(800,), dtype=h5py.string_dtype())
"""
CHANGE = """
import h5py, numpy as np, sys
with h5py.File('a.h5', 'r+') as f:
    f['i4'].id.write_direct_chunk((7000,), np.full(7000, 7, 'i4').tobytes())
    f['i4'].id.write_direct_chunk((98000,), np.arange(7000, 0, -1, dtype='i4').tobytes())  # the extent cuts it
    f['f8'].id.write_direct_chunk((100, 360), np.full((100, 90), 1.5, '>f8').tobytes(), filter_mask=0)
    f['f8'][3, 5] = -1
    f['own'][3] = -1
    print(f['i4'][7005], f['i4'][-1], f['f8'][150, 399])
    f['f8'].resize((260, 400))
    f['i4'][50000:50003] = 1, 2, 3
"""
TELL = """
import h5py, hashlib, sys
with h5py.File(sys.argv[1], 'r') as f:
    for name, d in sorted(f.items()):
        plist = d.id.get_create_plist()
        print(name, d.dtype, d.shape, d.chunks, d.compression, plist.get_nfilters(), hashlib.sha256(d[...].tobytes() if name != 'strings' else repr(d[...].tolist()).encode()).hexdigest())
        if name in ('own', 'strings'):
            continue
        print(name, d.id.get_num_chunks(), d.id.get_space_status())
        for i in range(d.id.get_num_chunks()):
            at = d.id.get_chunk_info(i)
            mask, stored = d.id.read_direct_chunk(at.chunk_offset)
            assert at == d.id.get_chunk_info_by_coord(at.chunk_offset) and at.size == len(stored)
            print(name, at.chunk_offset, at.filter_mask, at.size, mask, hashlib.sha256(stored).hexdigest())
"""
DIRECT = """
import h5py, os, sys
with h5py.File(sys.argv[1], 'r') as f, open(sys.argv[1].partition('@')[0], 'rb') as bytes:
    size = os.fstat(bytes.fileno()).st_size
    for name, d in f.items():
        for i in range(d.id.get_num_chunks() if name not in ('own', 'strings') else 0):
            at = d.id.get_chunk_info(i)
            if at.byte_offset is not None and at.byte_offset < size:
                bytes.seek(at.byte_offset)
                assert bytes.read(at.size) == d.id.read_direct_chunk(at.chunk_offset)[1], (name, at)
"""


@pytest.fixture(scope="module")
def natively(programs, tmp_path_factory):
    """What HDF5 alone says, at first and after the change, and of the change."""
    folder = tmp_path_factory.mktemp("native")
    said = []
    for code, *words in (MAKE,), (TELL, "a.h5"), (CHANGE,), (TELL, "a.h5"):
        done = programs.stock(sys.executable, "-c", code, *words, cwd=folder)
        assert done.returncode == 0, done.stderr
        said.append(done.stdout)
    return said


@pytest.mark.parametrize("setting", SETTINGS)
def test_programs_see_what_they_made(programs, natively, tmp_path, setting):
    def connector(code, *words):
        done = programs.connector(sys.executable, "-c", code, *words, options=f"compress={setting}", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    _, made, change, changed = natively
    connector(MAKE)
    size = (tmp_path / "a.h5").stat().st_size
    assert connector(TELL, "a.h5") == made
    assert connector(CHANGE) == change
    assert connector(TELL, "a.h5") == changed and connector(TELL, "a.h5@1") == made
    connector(DIRECT, "a.h5")
    connector(DIRECT, "a.h5@1")
    assert size < (1300000 if setting == "lzf:none" else 750000), size  # without the option 2,639,360
