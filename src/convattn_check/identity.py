"""Identity: two ways to compute a tensor agree, for all values of what is left open.

A certificate names an identity of its claim (formulas/), repeats its formulas, gives every index a
size, and every tensor its entries: numbers, matrices that a grid gives (grid_matrices.py), or
`symbols`, an unknown of its own for each entry. The formulas are evaluated as polynomials in these
unknowns. If the two sides are the same polynomials, the identity holds for all numbers, rational,
real or complex, in place of the unknowns: for every input, every parameter, every attention matrix
of these sizes. `differ` names two sides that are not the same polynomials: for some numbers they
differ.
"""

from fractions import Fraction
from itertools import product
from math import prod

from convattn_check import reading as read
from convattn_check.claims import Facts, require_claim
from convattn_check.cost import LARGEST_PART, whole_numbers
from convattn_check.formula import Evaluation, entry_text, read_formula, shape
from convattn_check.formulas import FORMULAS, Identity
from convattn_check.grid_matrices import BORDERS, read_grid
from convattn_check.layout import require_layout
from convattn_check.polynomial import Index, Tensor, constant
from convattn_check.reject import Reject, require, show

LARGEST_SIZE = 64
MOST_ENTRIES = 4_096
FIELDS = ("identity", "sizes", "tensors", "definitions", "equal", "differ")


def check_identity(claim: str, value: object) -> str:
    """Check the body; the sentence that follows from it."""
    body = read.fields(value, "body", FIELDS)
    require_claim(Facts("identity", claim))
    name = read.string(body["identity"], "identity")
    known = [other for of, other in FORMULAS if of == claim]
    require(name in known, "claim", f"{claim} needs one of the identities {known}; given {name!r}")
    identity = FORMULAS[claim, name]
    for field in ("definitions", "equal", "differ"):
        expected = getattr(identity, field)
        require(
            read.same(body[field], expected),
            "claim",
            f"{field} is {show(body[field])}, expected {show(expected)}, what {claim} says",
        )
    sizes = _read_sizes(body["sizes"], identity)
    evaluation = Evaluation(sizes)
    tensors = read.fields(body["tensors"], "tensors", identity.tensors)
    for number, tensor in enumerate(identity.tensors):
        axes, kind = identity.tensors[tensor]
        where, lengths = f"tensors.{tensor}", shape(axes, sizes)
        entries = _read_tensor(tensors[tensor], where, number, kind, lengths)
        evaluation.tensors[tensor] = lengths, entries
    for tensor, shifts in identity.shifts.items():
        grid = read.fields(tensors[tensor], tensor, ("border", "grid", "shifts", "stride"))
        stated = grid["shifts"]
        require(
            read.same(stated, shifts),
            "tensors",
            f"tensors.{tensor} has the shifts {show(stated)}, expected {show(shifts)}",
        )
    for definition in identity.definitions:
        evaluation.define(read_formula(definition))
    for left, right in identity.equal:
        _require_equal(left, right, evaluation)
    for left, right in identity.differ:
        require(
            evaluation.tensors[left] != evaluation.tensors[right],
            "identity",
            f"{left} and {right} are the same, expected two that differ",
        )
    require_layout(
        identity.layout,
        {tensor: value for tensor, value in tensors.items() if isinstance(value, dict)},
        {tensor: entries for tensor, (_, entries) in evaluation.tensors.items()},
    )
    spoken = ", ".join(f"{letter} {size}" for letter, size in sizes.items())
    symbols = [t for t in identity.tensors if identity.tensors[t][1] == "symbols"]
    values = f"for all values of {', '.join(symbols)}; " if symbols else ""
    grids = "".join(f"; {t} {show(tensors[t])}" for t in tensors if isinstance(tensors[t], dict))
    return f"{identity.meaning}; {values}sizes {spoken}{grids}"


def _read_sizes(value: object, identity: Identity) -> dict[str, int]:
    """The size of every index: at least 2, unless the identity says otherwise."""
    letters = read.fields(value, "sizes", sorted(identity.letters))
    sizes = {letter: read.integer(letters[letter], letter, 1, LARGEST_SIZE) for letter in letters}
    for letter, size in sizes.items():
        expected = identity.sizes.get(letter)
        if expected is None:
            require(size >= 2, "sizes", f"index {letter} has size {size}, expected at least 2")
        else:
            required = prod(sizes[x] if x.isalpha() else int(x) for x in expected)
            require(
                size == required,
                "sizes",
                f"index {letter} has size {size}, expected {required}, the product of {expected}",
            )
    for less, more in identity.fewer:
        require(
            sizes[less] < sizes[more],
            "sizes",
            f"index {less} has size {sizes[less]}, expected less than {more}'s, {sizes[more]}",
        )
    return sizes


def _read_tensor(
    value: object, where: str, number: int, kind: object, lengths: tuple[int, ...]
) -> Tensor:
    """The entries of one tensor, which must be of the kind that the identity asks for."""
    require(prod(lengths) <= MOST_ENTRIES, "range", f"{where} has {prod(lengths)} entries")
    indices: list[Index] = list(product(*map(range, lengths)))
    if not isinstance(kind, str) or kind in ("symbols", "ones", "identity", "causal"):
        require(
            read.same(value, kind), "tensors", f"{where} is {show(value)}, expected {show(kind)}"
        )
    if kind == "symbols":
        first = number * MOST_ENTRIES
        return {index: {(first + at,): Fraction(1)} for at, index in enumerate(indices)}
    if kind == "ones":
        return {index: constant(1) for index in indices}
    if kind == "identity":
        return {index: constant(1) for index in indices if len(set(index)) == 1}
    if kind == "causal":
        return {index: constant(1) for index in indices if index[1] <= index[0]}
    if kind in BORDERS:
        actual, entries, border = read_grid(value, where)
        require(border == kind, "tensors", f"{where} has the border {border!r}, expected {kind!r}")
        require(actual == lengths, "tensors", f"{where} has the shape {actual}, expected {lengths}")
        return entries
    numbers = read.rationals(value, where, len(indices))
    whole_numbers(numbers, where, LARGEST_PART)
    entries = {index: constant(x) for index, x in zip(indices, numbers, strict=True) if x}
    columns = {index[1] for index in entries} if kind == "mask" else set()
    fits: dict[object, bool] = {
        "positive": min(numbers) > 0,
        "nonzero": 0 not in numbers,
        "mask": {*numbers} == {Fraction(0), Fraction(1)} and len(columns) == lengths[-1],
    }
    require(fits.get(kind, True), "tensors", f"{where} is {show(value)}, expected it to be {kind}")
    return entries


def _require_equal(left: str, right: str, evaluation: Evaluation) -> None:
    (lengths, one), (others, two) = evaluation.tensors[left], evaluation.tensors[right]
    require(lengths == others, "identity", f"{left} has the shape {lengths}, {right} {others}")
    for index in sorted({*one, *two}):
        first, second = one.get(index, {}), two.get(index, {})
        if first != second:
            raise Reject(
                "identity",
                f"{left}{list(index)} is {entry_text(first)}, but {right}{list(index)} is "
                f"{entry_text(second)}",
            )
