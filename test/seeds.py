"""Where the random numbers of a test begin: other ones at each run, told so that the run can be repeated. random.h does
the same for C."""

import functools
import os


@functools.cache
def seed():
    """The seed of this run, below 2^32: H5COW_TEST_SEED, else a fresh one, which programs started from here get as well."""
    return int(os.environ.setdefault("H5COW_TEST_SEED", str(int.from_bytes(os.urandom(4), "little"))))


def again():
    return f"random numbers from seed {seed()}; again: H5COW_TEST_SEED={seed()}"
