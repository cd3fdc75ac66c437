"""Chunks that worker threads read below HDF5, straight to where the program wants them: nothing is read otherwise than by HDF5 itself.

The judge is an array that numpy keeps, and for damage that H5Dread fails.
"""


import h5py
import numpy as np
import pytest
from conftest import h5cow

FIELD = "np.random.default_rng(7).random((1000, 900))"
SHAPES = """
def look(x, field):
    np.testing.assert_array_equal(x[()], field)
    np.testing.assert_array_equal(x[64:512, 100:700], field[64:512, 100:700])
    np.testing.assert_array_equal(x.astype('f4')[()], field.astype('f4'))
    spread = np.zeros((1000, 1800))
    x.read_direct(spread, np.s_[:, :], np.s_[:, ::2])
    np.testing.assert_array_equal(spread[:, ::2], field)
    assert not spread[:, 1::2].any()
    wide = np.zeros((1000, 1000))
    x.read_direct(wide, np.s_[:, :], np.s_[:, 50:950])
    np.testing.assert_array_equal(wide[:, 50:950], field)
    np.testing.assert_array_equal(x[::3, 5::7], field[::3, 5::7])
"""
PROGRAM = (
    SHAPES
    + f"""
more = eval(sys.argv[2])
chunks = eval(sys.argv[3])
field = {FIELD}
with h5py.File(sys.argv[1], 'w', **more) as f:
    x = f.create_dataset('x', data=field, chunks=chunks, compression=sys.argv[4] or None)
    look(x, field)
    f.flush()
    look(x, field)
    field[40:200] += 1
    x[40:200] = field[40:200]
    look(x, field)
with h5py.File(sys.argv[1], 'r+') as f:
    x = f['x']
    look(x, field)
    field[::9, 3] = -1
    x[::9, 3] = field[::9, 3]
    look(x, field)
"""
)


@pytest.mark.parametrize(
    "chunks, compression, threads",
    [("(64, 128)", "", 1), ("(64, 128)", "", 2), ("(64, 128)", "gzip", 2), ("(1, 900)", "", 2), ("(100, 900)", "gzip", 1), ("(7, 130)", "", 2)],
)
def test_whole_chunks_come_to_every_place_in_memory(programs, tmp_path, chunks, compression, threads):
    done = programs.python(PROGRAM, "a.h5", "{}", chunks, compression, options=f"threads={threads}", cwd=tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("compression", ["", "gzip"])
def test_bytes_that_hdf5_has_in_its_page_buffer_count(programs, tmp_path, compression):
    more = "dict(fs_strategy='page', fs_page_size=65536, page_buf_size=1 << 24)"
    done = programs.python(PROGRAM, "a.h5", more, "(64, 128)", compression, options="threads=2", cwd=tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("compression", ["", "gzip"])
def test_a_damaged_chunk_makes_reading_fail_and_no_other(programs, tmp_path, compression, threads):
    make = f"with h5py.File(sys.argv[1], 'w') as f:\n f.create_dataset('x', data={FIELD}, chunks=(64, 128), compression=sys.argv[2] or None)"
    assert programs.python(make, "a.h5", compression, cwd=tmp_path).returncode == 0
    with h5py.File(tmp_path / "a.h5", "r") as f:
        raw = f["_versioned_data/raw/0"]
        damaged = next(raw.id.get_chunk_info(i) for i in range(raw.id.get_num_chunks()) if raw.id.get_chunk_info(i).chunk_offset[0] == 100 * 64)
    with open(tmp_path / "a.h5", "r+b") as f:
        f.seek(damaged.byte_offset + damaged.size // 2)
        byte = f.read(1)[0]
        f.seek(damaged.byte_offset + damaged.size // 2)
        f.write(bytes([byte ^ 8]))
    done = programs.python(
        """
with h5py.File(sys.argv[1], 'r') as f:
    x, bad = f['x'], 0
    for i in range(0, 1000, 64):
        for j in range(0, 900, 128):
            try:
                x[i:i + 64, j:j + 128]
            except OSError as e:
                assert 'slot' in str(e) or 'decoded' in str(e), e
                bad += 1
    assert bad == 1
    try:
        x[()]
    except OSError as e:
        assert 'slot' in str(e) or 'decoded' in str(e), e
        print('bad')
""",
        "a.h5",
        options=f"threads={threads}",
        errors=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0 and "bad" in done.stdout, done.stdout + done.stderr
    assert "slot 100" in h5cow("verify", tmp_path / "a.h5", code=1)
