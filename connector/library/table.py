#!/usr/bin/env python3
"""Writes the table of what connector and command call in libhdf5.

usage: table.py HEADERS OUT FOLDER...

HEADERS is headers.c, preprocessed with its macros kept (cc -E -dD). Each name of HDF5 in a source of FOLDER is followed
through these macros to the functions and variables of the library. OUT gets hdf5_table.h with the members of the table,
hdf5_calls.h with a macro for each name that goes by it, and hdf5_names.h with names and places, for dlsym. What is not
in every release of HDF5 is not here, but in versions.h.
"""

import pathlib
import re
import sys

NAME = re.compile(r"\bH5[A-Za-z0-9_]*\b")
COMMENTS_AND_STRINGS = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:[^\"\\\n]|\\.)*\"", re.S)


def code(text):
    return COMMENTS_AND_STRINGS.sub(" ", text)


def declared_in(headers):
    """Macros by name: parameters and body; functions; variables."""
    macros, rest = {}, []
    for line in re.sub(r"\\\n", " ", headers).splitlines():
        if macro := re.match(r"#define\s+(\w+)(\([^)]*\))?(.*)", line):
            macros[macro[1]] = (macro[2] or "", code(macro[3]))
        elif not line.startswith("#"):
            rest.append(line)
    text = "\n".join(rest)
    functions = {name for name in re.findall(r"\b(H5\w+)\s*\(", text) if not name.endswith("_t")}  # not types
    return macros, functions, set(re.findall(r"\bextern\s[^;(]*?\b(H5\w+_g)\s*;", text))


def used_by(sources, macros, symbols, by_hand):
    """The symbols that sources come to, through macros as well."""
    left = {name for source in sources for name in NAME.findall(code(source.read_text()))} - by_hand
    seen, used = set(), set()
    while left:
        name = left.pop()
        seen.add(name)
        if name in macros:
            left |= set(NAME.findall(macros[name][1])) - seen - by_hand
        if name in symbols:
            used.add(name)
    return sorted(used)


def by_table(name, macros, variables):
    """The macro that makes a name go by the table. One that is a macro already passes more than it is given."""
    to = f"(*cow_library.{name}_)" if name in variables else f"cow_library.{name}_"
    if name not in macros:
        return f"#define {name} {to}"
    parameters, body = macros[name]
    return f"#undef {name}\n#define {name}{parameters} " + re.sub(rf"\b{name}\b", to, body.strip())


def write(path, lines):
    text = "/* Written by table.py. */\n" + "".join(line + "\n" for line in lines)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def main():
    headers, out, *folders = map(pathlib.Path, sys.argv[1:])
    here = pathlib.Path(__file__).parent
    macros, functions, variables = declared_in(headers.read_text())
    by_hand = set(NAME.findall(code((here / "versions.h").read_text())))
    sources = [f for folder in folders for f in sorted(folder.rglob("*.[ch]")) if f != here / "headers.h"]
    symbols = {name for name in functions | variables if not name.startswith("H5PLget_plugin_")}  # ours
    used = used_by(sources, macros, symbols, by_hand)
    assert len(used) > 100, "the headers were not understood"
    write(out / "hdf5_table.h", [f"__typeof__({name}) *{name}_;" for name in used])
    write(out / "hdf5_names.h", [f'{{"{name}", offsetof(cow_hdf5, {name}_)}},' for name in used])
    write(out / "hdf5_calls.h", [by_table(name, macros, variables) for name in used])


if __name__ == "__main__":
    main()
