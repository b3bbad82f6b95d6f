"""The refusal of a file of weights."""


class WeightsRefused(ValueError):
    """A file of weights cannot be used; the message says which, why and what to do."""
