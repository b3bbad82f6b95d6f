"""Formulas between tensors, such as ``Y[nq] = A[kmn] X[mp] T[kpq]``, and their evaluation.

Every letter is an index with a size of its own. An index on the right that is not on the left is
summed over its range (Einstein's convention); an index may occur any number of times. ``(kl)`` is
one axis that runs through the pairs of two indices, row-major. A formula has one or more terms,
joined by + and -; a term may start with a rational number. ``c[]`` is a number, a tensor without an
axis. So this is exactly what einsum computes, with sums of terms and reshaped axes.
"""

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import prod
from typing import NamedTuple

from convattn_check.polynomial import Polynomial, Tensor, add_entry, constant, flat, multiply
from convattn_check.reject import Reject, require, show

MOST_STEPS = 300_000  # pairs of entries and of coefficients, in all formulas together
_FACTOR = re.compile(r"([A-Za-z])\[((?:[a-z]|\([a-z]+\))*)\]")
_AXIS = re.compile(r"(?<=\()[a-z]+|[a-z]")
_NUMBER = re.compile(r"[1-9][0-9]{0,8}(?:/[1-9][0-9]{0,8})?")

Axes = tuple[str, ...]  # for each axis the letters that it runs through
Sizes = Mapping[str, int]


class Factor(NamedTuple):
    """A tensor and its indices."""

    name: str
    axes: Axes


class Formula(NamedTuple):
    """The left side, and the terms of the right side with their coefficients."""

    left: Factor
    terms: tuple[tuple[Fraction, tuple[Factor, ...]], ...]


def read_formula(text: str) -> Formula:
    """Parse a formula.

    >>> read_formula("Y[n] = X[n] - 1/2 Z[(mn)]").terms[1]
    (Fraction(-1, 2), (Factor(name='Z', axes=('mn',)),))
    """
    left, equals, right = text.partition(" = ")
    require(bool(equals), "formula", f"{show(text)} has no ' = '")
    terms = []
    sign, rest = 1, right
    while True:
        match = re.match(r"(.*?) ([+-]) ", rest)
        term = match[1] if match else rest
        terms.append(_read_term(sign, term))
        if match is None:
            return Formula(_read_factor(left), tuple(terms))
        sign, rest = (1 if match[2] == "+" else -1), rest[match.end() :]


def _read_term(sign: int, text: str) -> tuple[Fraction, tuple[Factor, ...]]:
    words = text.split(" ")
    coefficient = Fraction(sign)
    if _NUMBER.fullmatch(words[0]):
        coefficient *= Fraction(words.pop(0))
    return coefficient, tuple(_read_factor(word) for word in words)


def _read_factor(text: str) -> Factor:
    match = _FACTOR.fullmatch(text)
    if match is None:
        raise Reject("formula", f"{show(text)} is not of the form 'A[kmn]'")
    return Factor(match[1], tuple(_AXIS.findall(match[2])))


def shape(axes: Axes, sizes: Sizes) -> tuple[int, ...]:
    """The lengths of the axes."""
    unknown = {letter for axis in axes for letter in axis if letter not in sizes}
    require(not unknown, "formula", f"the indices {sorted(unknown)} have no size")
    return tuple(prod(sizes[letter] for letter in axis) for axis in axes)


class Evaluation:
    """The tensors so far, and how many steps they took."""

    def __init__(self, sizes: Sizes) -> None:
        self.sizes = sizes
        self.tensors: dict[str, tuple[tuple[int, ...], Tensor]] = {}
        self.steps = 0

    def define(self, formula: Formula) -> None:
        """Evaluate the right side and give it the name on the left."""
        name, axes = formula.left
        letters = "".join(axes)
        require(name not in self.tensors, "formula", f"{name} is defined twice")
        require(len(set(letters)) == len(letters), "formula", f"{name} repeats an index")
        result: Tensor = {}
        for coefficient, factors in formula.terms:
            for values, polynomial in self._term(factors, letters).items():
                assignment = dict(zip(letters, values, strict=True))
                add_entry(result, self._index(axes, assignment), polynomial, coefficient)
        self.tensors[name] = shape(axes, self.sizes), result

    def _term(self, factors: Sequence[Factor], letters: str) -> Tensor:
        """The product of the factors, summed over the indices that are not among `letters`."""
        known: list[str] = []
        partial: Tensor = {(): constant(1)}
        for position, (name, axes) in enumerate(factors):
            require(name in self.tensors, "formula", f"{show(name)} is not defined yet")
            lengths, tensor = self.tensors[name]
            require(
                shape(axes, self.sizes) == lengths,
                "formula",
                f"{name} has the shape {lengths}, but its indices {axes} have other sizes",
            )
            later = {*letters}.union(*(axis for f in factors[position + 1 :] for axis in f.axes))
            letters_left = sorted({*known}.union(*axes) & later)
            joined: Tensor = {}
            entries = [(self._assign(axes, index), entry) for index, entry in tensor.items()]
            for values, left in partial.items():
                fixed = dict(zip(known, values, strict=True))
                self._count(len(entries))
                for assignment, right in entries:
                    if assignment is None or any(
                        fixed.get(letter, value) != value for letter, value in assignment.items()
                    ):
                        continue
                    self._count(len(left) * len(right))
                    both = fixed | assignment
                    product = multiply(left, right)
                    add_entry(joined, tuple(both[x] for x in letters_left), product, Fraction(1))
            known, partial = letters_left, joined
        missing = sorted(set(letters) - set(known))
        require(not missing, "formula", f"the indices {missing} do not occur in every term")
        order = [known.index(letter) for letter in letters]
        return {tuple(values[at] for at in order): entry for values, entry in partial.items()}

    def _count(self, steps: int) -> None:
        self.steps += steps
        require(
            self.steps <= MOST_STEPS,
            "cost",
            f"the formulas take more than {MOST_STEPS} steps: give smaller sizes",
        )

    def _assign(self, axes: Axes, index: Sequence[int]) -> dict[str, int] | None:
        """The value of each letter; none if a letter would need two values (off a diagonal)."""
        assignment: dict[str, int] = {}
        for axis, position in zip(axes, index, strict=True):
            for letter in reversed(axis):
                position, value = divmod(position, self.sizes[letter])
                if assignment.setdefault(letter, value) != value:
                    return None
        return assignment

    def _index(self, axes: Axes, assignment: Mapping[str, int]) -> tuple[int, ...]:
        return tuple(
            flat([assignment[x] for x in axis], [self.sizes[x] for x in axis]) for axis in axes
        )


def entry_text(polynomial: Polynomial) -> str:
    """A polynomial for a message: at most three of its monomials."""
    parts = [
        show(coefficient) + "".join(f"*x{symbol}" for symbol in monomial)
        for monomial, coefficient in sorted(polynomial.items())[:3]
    ]
    return (" + ".join(parts) or "0") + (" + ..." if len(polynomial) > 3 else "")
