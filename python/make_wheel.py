#!/usr/bin/env python3
"""Puts the wheel together: package, plugin, command and licences; ./dev wheel calls this.

usage: make_wheel.py --version V --platform TAG --build FOLDER --out FOLDER [--licence NAME=FILE]...

The same contents give the same bytes: names in order, times from SOURCE_DATE_EPOCH, permissions set here. Prints the path
of the wheel.
"""

import argparse
import base64
import hashlib
import os
import pathlib
import subprocess
import tempfile
import time
import zipfile

HERE = pathlib.Path(__file__).resolve().parent

# Licences of h5cow itself and of what is linked in.
LICENCES = "BSD-3-Clause AND BSD-2-Clause AND Apache-2.0 AND MIT AND Zlib AND GPL-3.0-or-later WITH GCC-exception-3.1"

METADATA = """\
Metadata-Version: 2.4
Name: h5cow
Version: {version}
Summary: Version history for HDF5 files, for programs that know nothing of it
License-Expression: {licences}
{files}
Keywords: HDF5,h5py,netCDF4,PyTables,version control
Classifier: Intended Audience :: Science/Research
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: Python :: 3
Classifier: Topic :: Scientific/Engineering
Classifier: Topic :: Software Development :: Version Control
Classifier: Typing :: Typed
Requires-Python: >=3.9
Provides-Extra: h5py
Requires-Dist: h5py>=3.10; extra == "h5py"
Description-Content-Type: text/markdown

{description}"""

WHEEL = """\
Wheel-Version: 1.0
Generator: h5cow {version}
Root-Is-Purelib: false
Tag: py3-none-{platform}
"""

ENTRY_POINTS = """\
[console_scripts]
h5cow = h5cow.__main__:main
"""


def stripped(path):
    """The bytes of a program without what only debuggers read."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / path.name
        subprocess.run(["strip", "--strip-unneeded", "-o", out, path], check=True)
        return out.read_bytes()


def contents(arguments):
    """Name -> bytes and permissions, but for RECORD."""
    info = f"h5cow-{arguments.version}.dist-info"
    files = {}
    for path in sorted(HERE.glob("h5cow/**/*")):
        if path.suffix == ".py" or path.name == "py.typed":
            files[str(path.relative_to(HERE))] = path.read_bytes(), 0o644
    files["h5cow/plugin/libh5cow.so"] = stripped(arguments.build / "connector/libh5cow.so"), 0o755
    files["h5cow/plugin/h5cow"] = stripped(arguments.build / "cli/h5cow"), 0o755
    licences = {"LICENSE": HERE.parent / "LICENSE", **dict(l.split("=", 1) for l in arguments.licence)}
    for name, path in licences.items():
        files[f"{info}/licenses/{name}"] = pathlib.Path(path).read_bytes(), 0o644
    metadata = METADATA.format(
        version=arguments.version,
        licences=LICENCES,
        files="\n".join(f"License-File: {name}" for name in licences),
        description=(HERE / "README.md").read_text(),
    )
    files[f"{info}/METADATA"] = metadata.encode(), 0o644
    files[f"{info}/WHEEL"] = WHEEL.format(version=arguments.version, platform=arguments.platform).encode(), 0o644
    files[f"{info}/entry_points.txt"] = ENTRY_POINTS.encode(), 0o644
    return info, files


def record(info, files):
    def digest(data):
        return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()

    lines = [f"{name},sha256={digest(data)},{len(data)}" for name, (data, _) in files.items()]
    return "".join(f"{line}\n" for line in [*lines, f"{info}/RECORD,,"]).encode()


def write(path, info, files):
    """RECORD comes last, as the format wants. Zip knows no time before 1980."""
    when = time.gmtime(max(int(os.environ.get("SOURCE_DATE_EPOCH", 0)), 315532800))[:6]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
        for name, (data, mode) in {**files, f"{info}/RECORD": (record(info, files), 0o644)}.items():
            entry = zipfile.ZipInfo(name, when)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3  # Unix: permissions count
            entry.external_attr = (0o100000 | mode) << 16
            wheel.writestr(entry, data)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--version", required=True)
    parser.add_argument("--platform", required=True)
    parser.add_argument("--build", required=True, type=pathlib.Path)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--licence", action="append", default=[])
    arguments = parser.parse_args()
    info, files = contents(arguments)
    arguments.out.mkdir(parents=True, exist_ok=True)
    path = arguments.out / f"h5cow-{arguments.version}-py3-none-{arguments.platform}.whl"
    part = path.with_suffix(".part")
    write(part, info, files)
    part.replace(path)
    print(path)


if __name__ == "__main__":
    main()
