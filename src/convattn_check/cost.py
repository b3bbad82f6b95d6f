"""What a check may cost: bounds on the numbers that it computes, not only on those that it reads.

Sums of fractions have common denominators as long as all denominators together, and the minors of a
matrix are as long as all its rows; so a short file can ask for numbers of any length. Rationals are
therefore brought to a common denominator of bounded length before anything is added, and long
computations count their steps, with the lengths of the numbers. What costs too much is rejected
with the code `cost`, by the same count on every machine; nothing that is proved depends on it.
"""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import lcm

from convattn_check.reject import Reject, show

MOST_STEPS = 2**30  # two seconds or so
LARGEST_WHOLE = 2**1024  # common denominators, and what they multiply
LARGEST_PART = 10**60  # the same, where fractions are added as such
DIGIT = 30  # bits: Python's integers are made of digits of so many
OVERHEAD = 8  # digits: what a product of small numbers costs beyond their digits


class Work:
    """The steps of one computation; a product of two numbers of m and n digits takes
    (m + OVERHEAD)·(n + OVERHEAD) of them.
    """

    def __init__(self, what: str) -> None:
        self.what = what
        self.steps = 0

    def add(self, products: int, left: int = 1, right: int = 1) -> None:
        """Count so many products of two numbers of so many bits, before they are computed.

        >>> work = Work("the sum")
        >>> work.add(10, 300, 30)
        >>> work.steps
        1620
        """
        self.steps += products * (left // DIGIT + OVERHEAD) * (right // DIGIT + OVERHEAD)
        if self.steps > MOST_STEPS:
            raise Reject(
                "cost",
                f"{self.what} takes {self.steps} steps or more, expected up to {MOST_STEPS}: give "
                "a smaller case, or shorter numbers",
            )


def longest(numbers: Iterable[int]) -> int:
    """The bits of the longest of some integers.

    >>> longest([3, -4, 0]), longest([])
    (3, 0)
    """
    return max(map(int.bit_length, numbers), default=0)


def whole_numbers(
    numbers: Sequence[Fraction], where: str, largest: int = LARGEST_WHOLE
) -> tuple[list[int], int]:
    """The numbers times a common denominator, and this denominator, before anything is added.

    >>> whole_numbers([Fraction(1, 2), Fraction(-2, 3)], "values")
    ([3, -4], 6)
    """
    unit = 1
    for number in numbers:
        unit = lcm(unit, number.denominator)
        if unit >= largest or abs(number.numerator) >= largest:
            raise Reject(
                "cost",
                f"{where} has {show(number)}, and with it the common denominator {show(unit)}; "
                f"numerators and the common denominator are expected below {show(largest)}: give "
                "shorter numbers, or denominators with common factors",
            )
    return [number.numerator * (unit // number.denominator) for number in numbers], unit
