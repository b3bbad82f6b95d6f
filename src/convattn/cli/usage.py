"""Wrong use of the command line."""


class UsageError(Exception):
    """The arguments cannot be carried out; the command line prints the message and exits 2."""
