#!/usr/bin/env python3
"""An everyday h5py program that keeps a climate file up to date. It knows nothing of versions.

usage: climate.py correct FILE DEGREES   add DEGREES to a box of the North Atlantic in the first three months of SST
       climate.py extend FILE            append a second year: temperatures a little warmer, all else as in the first
       climate.py summarise FILE         write zonal means of SST into a group of their own
       climate.py rewrite FILE           read SST and write it back as it was
       climate.py product FROM FILE DEGREES   create FILE anew: all variables of FROM, and SST corrected by DEGREES
"""

import sys

import h5py
import numpy as np

BOX = np.s_[0:3, 60:75, 140:160]  # January to March, 31 to 59 N, 59 to 21 W
WARMING = np.float32(0.02)  # degrees Celsius in a year
MISSING = np.float32(-1e34)


def correct(file, degrees):
    sst = file["SST"]
    box = sst[BOX]
    sst[BOX] = np.where(box == MISSING, box, box + np.float32(degrees))
    sst.attrs["correction"] = f"{degrees} degrees added to the North Atlantic, January to March"


def extend(file):
    time = file["TIME"]
    months = len(time)
    hours = time[:]
    for variable in file.values():
        if variable.ndim == 0 or variable.shape[0] != months or variable.maxshape[0] is not None:
            continue
        year = variable[:]
        variable.resize(2 * months, axis=0)
        if variable.name == "/TIME":
            variable[months:] = hours + 8766
        elif variable.name in ("/SST", "/AIRT"):
            variable[months:] = np.where(year == MISSING, year, year + WARMING)
        else:
            variable[months:] = year


def summarise(file):
    sst = file["SST"][:]
    valid = np.ma.masked_equal(sst, MISSING)
    group = file.require_group("summary")
    group.attrs["source"] = "/SST"
    group.create_dataset("zonal_mean", data=valid.mean(axis=2).filled(MISSING), compression="gzip")
    group.create_dataset("annual_mean", data=valid.mean(axis=0).filled(MISSING), compression="gzip")


def rewrite(file):
    file["SST"][...] = file["SST"][...]


def product(source, name, degrees):
    with h5py.File(source, "r") as old, h5py.File(name, "w") as new:
        for variable in old.values():
            if isinstance(variable, h5py.Dataset) and variable.chunks:
                new.create_dataset(variable.name, data=variable[()], chunks=variable.chunks, compression="gzip")
        box = new["SST"][BOX]
        new["SST"][BOX] = np.where(box == MISSING, box, box + np.float32(degrees))


def main():
    verbs = {verb.__name__: verb for verb in (correct, extend, summarise, rewrite, product)}
    if len(sys.argv) < 3 or sys.argv[1] not in verbs:
        sys.exit(__doc__)
    if sys.argv[1] == "product" and len(sys.argv) == 5:
        return product(sys.argv[2], sys.argv[3], float(sys.argv[4]))
    with h5py.File(sys.argv[2], "r+") as file:
        verbs[sys.argv[1]](file, *map(float, sys.argv[3:]))


if __name__ == "__main__":
    main()
