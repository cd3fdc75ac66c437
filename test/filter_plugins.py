"""Filters that are plugins, on datasets of several shapes and types: the program that test_filter_plugins.py runs, natively and
through the connector, and what each filter does with each dataset, for docs/data-model.md.

usage: filter_plugins.py FOLDER FILTER          creates, changes and appends to a file for each dataset; one line of JSON each
       filter_plugins.py --look FILTER FILE...  what the dataset of each file is; one line of JSON each

A filter may crash its process, or end it: each dataset has a process of its own.
"""

import hashlib
import json
import os
import sys

KINDS = {  # type, extent, chunks: each has chunks that the extent cuts
    "1-D float32": ("f4", (1000,), (300,)),
    "1-D float64": ("f8", (1000,), (300,)),
    "1-D int32": ("i4", (1000,), (300,)),
    "1-D uint16": ("u2", (1000,), (300,)),
    "2-D float32": ("f4", (70, 50), (32, 20)),
    "2-D int32": ("i4", (70, 50), (32, 20)),
    "2-D uint8": ("u1", (70, 50), (32, 20)),
    "1-D compound": ([("a", "i4"), ("b", "f8")], (1000,), (300,)),
}

SAME, CREATION, WRITING, ENDS = "same", "not made", "not written", "ends the program"

# What native HDF5 does, where it is not SAME. Keys are the kinds, or the beginning of several.
FILTERS = {
    "Bitshuffle()": {},
    "Bitshuffle(cname='none')": {},
    "Bitshuffle(cname='zstd')": {},
    "Blosc()": {},
    "Blosc2()": {},
    "BZip2()": {},
    "FciDecomp()": {},
    "LZ4()": {},
    "SZ(absolute=0.01)": {"1-D compound": ENDS},
    "SZ3(absolute=0.01)": {"1-D compound": ENDS},
    "Sperr(rate=4)": {"1-D": WRITING, "2-D int32": WRITING, "2-D uint8": WRITING},
    "Zfp(reversible=True)": {"1-D uint16": CREATION, "2-D uint8": CREATION},
    "Zfp(rate=8)": {"1-D uint16": CREATION, "2-D uint8": CREATION},
    "Zstd()": {},
}
# Of Debian's packages, by number, as h5py calls a filter that it does not know.
DEBIAN = {
    "307 (bzip2)": ("compression=307, compression_opts=(9,)", {}),
    "32000 (LZF)": ("compression=32000", {}),
    "32001 (Blosc)": ("compression=32001", {}),
    "32004 (LZ4)": ("compression=32004, compression_opts=(0,)", {}),
    "32013 (ZFP)": ("compression=32013, compression_opts=(5,)", {"1-D uint16": CREATION, "2-D uint8": CREATION}),
    "32018 (FCIDECOMP)": ("compression=32018", {}),
}


def expected(answers, kind):
    return next((answer for prefix, answer in answers.items() if kind.startswith(prefix)), SAME)


def table():
    """For docs/data-model.md."""
    words = {SAME: "✓", CREATION: "not made", WRITING: "not written", ENDS: "ends the program"}
    rows = [(f"hdf5plugin.{name}", answers) for name, answers in FILTERS.items()]
    rows += [(f"Debian's {name}", answers) for name, (_, answers) in DEBIAN.items()]
    text = "| filter | " + " | ".join(KINDS) + " |\n|---|" + "---|" * len(KINDS) + "\n"
    for name, answers in rows:
        text += f"| {name} | " + " | ".join(words[expected(answers, kind)] for kind in KINDS) + " |\n"
    return text


def values(numpy, kind, rows, seed):
    kind, shape, _ = KINDS[kind]
    size = rows * int(numpy.prod(shape[1:]))
    numbers = (numpy.arange(size) * 7 + seed * 100) % 251
    if isinstance(kind, str):
        return numbers.astype(kind).reshape((rows, *shape[1:]))
    made = numpy.zeros(size, kind)
    made["a"], made["b"] = numbers, numbers / 2
    return made.reshape((rows, *shape[1:]))


def look(h5py, path):
    with h5py.File(path, "r") as file:
        found = file["x"][()]
    return hashlib.sha256(found.tobytes()).hexdigest()[:16], list(found.shape)


def live(h5py, numpy, kind, path, options):
    """Three sessions; after each, what is read."""
    seen = []
    answer = CREATION
    try:
        with h5py.File(path, "w") as file:
            _, shape, chunks = KINDS[kind]
            made = file.create_dataset("x", shape, KINDS[kind][0], chunks=chunks, maxshape=(None, *shape[1:]), **options)
            answer = WRITING
            made[...] = values(numpy, kind, shape[0], 1)
        seen.append(look(h5py, path))
        with h5py.File(path, "r+") as file:
            file["x"][3:10] = values(numpy, kind, 7, 2)
        seen.append(look(h5py, path))
        with h5py.File(path, "r+") as file:
            file["x"].resize(shape[0] + 45, axis=0)
            file["x"][-45:] = values(numpy, kind, 45, 3)
        seen.append(look(h5py, path))
        answer = SAME
    except (OSError, RuntimeError, ValueError) as error:
        print(kind, error, file=sys.stderr)
    return answer, seen


def apart(work):
    """What WORK gives, in a process of its own: None where that ends before; and its wait status."""
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        os.write(write, json.dumps(work()).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as answer:
        text = answer.read()
    _, status = os.waitpid(child, 0)
    return json.loads(text) if text else None, status


def tell(answer):
    print("\n" + json.dumps(answer))  # filters print to standard output, and do not end their lines


def main(arguments):
    import h5py
    import numpy

    looking = arguments[0] == "--look"
    try:
        import hdf5plugin
    except ImportError:
        hdf5plugin = None
    if looking:
        for path in arguments[2:]:
            tell(apart(lambda path=path: look(h5py, path))[0])
        return
    options = arguments[1]
    options = eval(f"dict({options})") if options.startswith("compression") else eval(f"hdf5plugin.{options}")
    for number, kind in enumerate(KINDS):
        path = os.path.join(arguments[0], f"{number}.h5")
        tell(apart(lambda kind=kind, path=path: live(h5py, numpy, kind, path, options)))


if __name__ == "__main__":
    main(sys.argv[1:])
