#!/usr/bin/env python3
"""The content hash of an HDF5 file, as hash.md says, with h5py alone.

usage: hash.py [--list] FILE [PATH]

What h5py cannot read as it is stored (it takes big-endian sequences for others, and does not tell all about bit fields and about
floats that numpy lacks), links of classes of one's own and references of HDF5 1.12 are not in it.
"""

import ctypes
import hashlib
import itertools
import re
import sys

import h5py
import numpy as np
from h5py import h5o, h5r, h5s, h5t

BLOCK = 65536
HISTORY = "_versioned_data"  # in the root; it is one where it has the attribute `format`, and then no part of what is hashed


def number(n):
    return (n % (1 << 64)).to_bytes(8, "little")


def hdf5():
    """libhdf5 as h5py has it."""
    with open("/proc/self/maps") as maps:
        return ctypes.CDLL(next(line.split(None, 5)[5].strip() for line in maps if re.search(r"/libhdf5(_serial)?[-.]", line)))


def comment(o):
    """h5py has a function for it, which tells of an object without one what was in memory before."""
    library = hdf5()
    library.H5Oget_comment.restype = ctypes.c_ssize_t
    size = library.H5Oget_comment(ctypes.c_int64(o.id.id), None, ctypes.c_size_t(0))
    found = ctypes.create_string_buffer(size + 1)
    if size > 0:
        library.H5Oget_comment(ctypes.c_int64(o.id.id), found, ctypes.c_size_t(size + 1))
    return found.value


def text(t):
    t = t.encode() if isinstance(t, str) else t
    return number(len(t)) + t


def used(t):
    """The bits that a number of type T uses, of all of its bytes, and how far to the left an integer stands; None: all."""
    t = t.get_super() if isinstance(t, h5t.TypeEnumID) else t
    if isinstance(t, h5t.TypeIntegerID):
        fields = [(t.get_offset(), t.get_precision())]
    elif isinstance(t, h5t.TypeFloatID) and t.get_order() in (h5t.ORDER_LE, h5t.ORDER_BE):
        sign, exponent, exponent_size, mantissa, mantissa_size = t.get_fields()
        fields = [(sign, 1), (exponent, exponent_size), (mantissa, mantissa_size)]
    else:
        return None
    bits = sum(((1 << size) - 1) << first for first, size in fields)
    return None if bits == (1 << 8 * t.get_size()) - 1 else (bits, t.get_offset() if isinstance(t, h5t.TypeIntegerID) else 0)


def numbers(name, *values):
    return text(name) + b"".join(map(number, values))


class Hash:
    def __init__(self, top):
        """TOP: an open object. self.total, self.objects: [(path, hash)]."""
        self.file, self.root = top.file.id, self.address(top.file)
        self.history = HISTORY in top.file and "format" in top.file[HISTORY].attrs
        met, self.path = self.walk(top)
        self.all = self.walk(top.file["/"])[1] if self.history else self.path
        total = hashlib.sha256(text("h5cow content hash 1"))
        self.objects = []
        for path, o in met:
            own = hashlib.sha256(self.object(o)).digest()
            total.update(text(path) + own)
            self.objects.append((path, own.hex()))
        self.total = total.hexdigest()

    def walk(self, top):
        """All that is below, [(path, object)], and {address: path}."""
        met, paths = [("/", top)], {self.address(top): "/"}
        for path, o in met:
            for name in self.names(o):
                link = o.get(name, getlink=True)
                if not isinstance(link, h5py.HardLink) or self.address(o[name]) in paths:
                    continue
                below = path.rstrip("/") + "/" + name
                paths[self.address(o[name])] = below
                met.append((below, o[name]))
        return met, paths

    @staticmethod
    def address(o):
        return h5o.get_info(o.id).addr

    def names(self, o):
        if not isinstance(o, h5py.Group):
            return []
        reserved = self.history and self.address(o) == self.root
        return sorted((name for name in o if not reserved or name != HISTORY), key=lambda name: name.encode())

    def object(self, o):
        if isinstance(o, h5py.Group):
            names = self.names(o)
            found = text("group") + number(len(names))
            for name in names:
                found += text(name) + self.link(o, name)
        elif isinstance(o, h5py.Dataset):
            found = text("dataset") + self.type(o.id.get_type()) + self.space(o.id.get_space())
            if o.shape is not None and o.size:
                found += self.elements(o.id.get_type(), o[()])
        else:
            found = text("type") + self.type(o.id)
        found += number(len(o.attrs))
        for name in sorted(o.attrs, key=lambda name: name.encode()):
            a = o.attrs.get_id(name)
            found += text(name) + self.type(a.get_type()) + self.space(a.get_space())
            if a.get_space().get_simple_extent_type() != h5s.NULL and a.get_space().get_simple_extent_npoints():
                value = np.empty(a.shape, a.dtype)
                a.read(value)
                found += self.elements(a.get_type(), value)
        return found + text(comment(o))

    def link(self, group, name):
        link = group.get(name, getlink=True)
        if isinstance(link, h5py.SoftLink):
            return text("soft") + text(link.path)
        if isinstance(link, h5py.ExternalLink):
            return numbers("external", 64) + text(b"\0" + link.filename.encode() + b"\0" + link.path.encode() + b"\0")
        return text("object") + text(self.path[self.address(group[name])])

    @staticmethod
    def space(s):
        kind = s.get_simple_extent_type()
        if kind != h5s.SIMPLE:
            return text("null" if kind == h5s.NULL else "scalar")
        pairs = zip(s.get_simple_extent_dims(), s.get_simple_extent_dims(True))
        return numbers("simple", s.get_simple_extent_ndims(), *itertools.chain(*pairs))

    def type(self, t):
        if isinstance(t, h5t.TypeEnumID):
            base = t.get_super()
            found = text("enumeration") + self.type(base)
            members = sorted((t.get_member_name(i), t.get_member_value(i)) for i in range(t.get_nmembers()))
            found += number(len(members))
            for name, value in members:
                bits, left = used(base) or (-1, 0)
                found += text(name) + (int(value) << left & bits & (1 << 8 * base.get_size()) - 1).to_bytes(base.get_size(), "little")
            return found
        if isinstance(t, h5t.TypeIntegerID):
            return numbers("integer", t.get_size(), t.get_precision(), t.get_offset(), t.get_sign() != h5t.SGN_NONE)
        if isinstance(t, h5t.TypeBitfieldID):
            return numbers("bitfield", t.get_size(), t.get_precision(), t.get_offset(), 0)
        if isinstance(t, h5t.TypeFloatID):
            sign, exponent, exponent_size, mantissa, mantissa_size = t.get_fields()
            return numbers("float", t.get_size(), sign, exponent, exponent_size, t.get_ebias(), mantissa, mantissa_size, t.get_norm())
        if isinstance(t, h5t.TypeStringID):
            if t.is_variable_str():
                return numbers("text", t.get_cset())
            return numbers("string", t.get_size(), t.get_strpad(), t.get_cset())
        if isinstance(t, h5t.TypeOpaqueID):
            return numbers("opaque", t.get_size()) + text(t.get_tag())
        if isinstance(t, h5t.TypeCompoundID):
            found = numbers("compound", t.get_nmembers())
            for i in range(t.get_nmembers()):
                found += text(t.get_member_name(i)) + self.type(t.get_member_type(i))
            return found
        if isinstance(t, h5t.TypeArrayID):
            return numbers("array", t.get_array_ndims(), *t.get_array_dims()) + self.type(t.get_super())
        if isinstance(t, h5t.TypeVlenID):
            return text("sequence") + self.type(t.get_super())
        if isinstance(t, h5t.TypeReferenceID):
            return text("reference to an object" if t.equal(h5t.STD_REF_OBJ) else "reference to a region")
        raise NotImplementedError(t)

    def elements(self, t, values):
        values = np.asarray(values)
        if isinstance(t, h5t.TypeArrayID):
            values = values.reshape((-1, *t.get_array_dims()))
        else:
            values = values.reshape(-1)
        found, runs = b"", []
        for start in range(0, len(values), BLOCK):
            part = values[start : start + BLOCK]
            one = hashlib.sha256(b"".join(self.value(t, v) for v in part) if self.slow(t) else self.plain(t, part)).digest()
            if runs and runs[-1][0] == one:
                runs[-1][1] += 1
            else:
                runs.append([one, 1])
        for one, times in runs:
            found += one + number(times)
        return found

    @staticmethod
    def slow(t):
        return not isinstance(t, (h5t.TypeIntegerID, h5t.TypeFloatID, h5t.TypeEnumID, h5t.TypeOpaqueID)) and (
            not isinstance(t, h5t.TypeStringID) or t.is_variable_str()
        )

    @staticmethod
    def plain(t, values):
        values, spare = values.astype(values.dtype.newbyteorder("<")), used(t)
        if spare is None:
            return values.tobytes()
        bits, left = spare  # h5py has integers where they stand at the right
        found = np.frombuffer((values << left if left else values).tobytes(), "u1").reshape(-1, t.get_size())
        return (found & np.frombuffer(bits.to_bytes(t.get_size(), "little"), "u1")).tobytes()

    def value(self, t, v):
        if isinstance(t, h5t.TypeStringID) and not t.is_variable_str():
            return bytes(v).ljust(t.get_size(), b"\0")
        if not self.slow(t):
            return self.plain(t, np.asarray(v, dtype=getattr(v, "dtype", None)))
        if isinstance(t, h5t.TypeStringID):
            return text(b"" if v is None or (not isinstance(v, (bytes, str)) and v == 0) else v)
        if isinstance(t, h5t.TypeCompoundID):
            if isinstance(v, (complex, np.complexfloating)):  # which h5py makes of members r and i
                v = (v.real, v.imag)
            return b"".join(self.value(t.get_member_type(i), v[i]) for i in range(t.get_nmembers()))
        if isinstance(t, h5t.TypeArrayID):
            inner = t.get_super()
            flat = np.asarray(v).reshape((-1, *(inner.get_array_dims() if isinstance(inner, h5t.TypeArrayID) else ())))
            return b"".join(self.value(inner, x) for x in flat)
        if isinstance(t, h5t.TypeVlenID):
            return number(len(v)) + b"".join(self.value(t.get_super(), x) for x in v)
        if isinstance(t, h5t.TypeReferenceID):
            return self.reference(v)
        raise NotImplementedError(t)

    def reference(self, r):
        if not r:
            return text("nothing")
        try:
            o = h5r.dereference(r, self.file)
        except Exception:
            return text("nothing")
        address = h5o.get_info(o).addr
        if self.history and address not in self.all:  # only older versions have it
            return text("nothing")
        if address not in self.path:
            return text("elsewhere")
        region = isinstance(r, h5r.RegionReference)
        found = text("region" if region else "object") + text(self.path[address])
        if region:
            s = h5r.get_region(r, self.file)
            kind = s.get_select_type()
            found += number(kind)
            if kind in (h5s.SEL_POINTS, h5s.SEL_HYPERSLABS):
                listed = s.get_select_elem_pointlist() if kind == h5s.SEL_POINTS else s.get_select_hyper_blocklist()
                found += number(len(listed)) + b"".join(number(int(n)) for n in np.asarray(listed).reshape(-1))
        return found


def content_hash(file, path="/"):
    with h5py.File(file, "r") as f:
        return Hash(f[path])


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if word != "--list"]
    told = content_hash(*words)
    for path, own in told.objects if "--list" in sys.argv else []:
        print(f"{own}  {path}")
    print(f"{told.total}  {' '.join(words)}")
