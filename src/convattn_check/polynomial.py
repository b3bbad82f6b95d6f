"""Polynomials with rational coefficients, and tensors of them.

A monomial is the sorted tuple of its symbols' numbers, a polynomial a dictionary from monomials to
coefficients that are not zero: {(): 3, (0, 0, 2): 1/2} is 3 + x0² x2 / 2. Two polynomials are equal
as dictionaries exactly if they are equal at every point, since the rationals are infinite.
"""

from collections.abc import Sequence
from fractions import Fraction

Polynomial = dict[tuple[int, ...], Fraction]
Index = tuple[int, ...]
Tensor = dict[Index, Polynomial]  # entries that are not zero


def constant(number: Fraction | int) -> Polynomial:
    """A polynomial without symbols.

    >>> constant(0), constant(2)
    ({}, {(): Fraction(2, 1)})
    """
    return {(): Fraction(number)} if number else {}


def multiply(left: Polynomial, right: Polynomial) -> Polynomial:
    """The product.

    >>> multiply({(0,): Fraction(1), (): Fraction(1)}, {(0,): Fraction(1), (): Fraction(-1)})
    {(0, 0): Fraction(1, 1), (): Fraction(-1, 1)}
    """
    product: Polynomial = {}
    for first, a in left.items():
        for second, b in right.items():
            add_monomial(product, tuple(sorted(first + second)), a * b)
    return product


def add_monomial(total: Polynomial, monomial: tuple[int, ...], coefficient: Fraction) -> None:
    """Add to a polynomial in place; what becomes zero is removed."""
    value = total.get(monomial, Fraction(0)) + coefficient
    if value:
        total[monomial] = value
    else:
        total.pop(monomial, None)


def add_entry(tensor: Tensor, index: Index, term: Polynomial, factor: Fraction) -> None:
    """Add factor·term to an entry of a tensor in place; an entry that becomes zero is removed."""
    entry = tensor.setdefault(index, {})
    for monomial, coefficient in term.items():
        add_monomial(entry, monomial, coefficient * factor)
    if not entry:
        del tensor[index]


def flat(index: Sequence[int], sizes: Sequence[int]) -> int:
    """The row-major position of an index.

    >>> flat((1, 2), (3, 4))
    6
    """
    position = 0
    for place, size in zip(index, sizes, strict=True):
        position = position * size + place
    return position
