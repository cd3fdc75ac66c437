"""What can go wrong, as exceptions. Each message says what to do."""


class Error(Exception):
    """Something that h5cow was asked for could not be done."""


class OptionError(Error, ValueError):
    """An option that the connector does not have, or a value that it does not take."""


class TooLate(Error, RuntimeError):
    """`enable()` was called after a module had started its HDF5 library, which cannot be changed any more."""


class TooLateWarning(UserWarning):
    """The same for an HDF5 library of which no module is known that uses it."""
