"""How a check says no: by an exception with a reason code, never by an ``assert``."""

from fractions import Fraction


class Reject(Exception):
    """The certificate is not accepted, for the reason with this code.

    >>> Reject("ring", "low is 0, expected at least 1").code
    'ring'
    """

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(f"{code}: {reason}")
        self.code = code
        self.reason = reason


def require(condition: bool, code: str, reason: str) -> None:
    """Raise `Reject` unless the condition holds.

    >>> require(1 + 1 == 2, "sum", "1 + 1 is not 2")
    """
    if not condition:
        raise Reject(code, reason)


def show(value: object) -> str:
    """A value for a message: plain ASCII without control characters, and short.

    >>> show("caf\\u00e9"), show(Fraction(-1, 3)), show(2**1000)
    ("'caf\\\\xe9'", '-1/3', 'an integer of 1001 bits')
    """
    if isinstance(value, Fraction) and value.denominator > 1:
        return f"{show(value.numerator)}/{show(value.denominator)}"
    if isinstance(value, Fraction):
        return show(value.numerator)
    if isinstance(value, int) and value.bit_length() > 256:
        return f"an integer of {value.bit_length()} bits"
    text = ascii(value)
    return text if len(text) <= 100 else text[:97] + "..."
