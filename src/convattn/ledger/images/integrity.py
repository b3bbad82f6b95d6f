"""The error for data that is missing, cut short or not what its digest says."""


class DataIntegrityError(ValueError):
    """Stored data is missing or differs from what the package was released with.

    The message names the file, what was found, what was expected, and how to get it back.

    >>> issubclass(DataIntegrityError, ValueError)
    True
    """
