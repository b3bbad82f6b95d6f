"""How far the outputs of two runs of one function can lie apart: derived, and far from vacuous.

Bounds that push magnitudes through twenty layers grow by Σ|W|, a factor of some fifty in each, and
say nothing. The difference of two runs obeys something sharper.

*The identity.* Let x be the values of one run, x' those of the other, both as they were computed,
and d = x - x'. Through every equation d goes by a linear map M that is known once both runs are
done, up to rounding and curvature (`rounding_rules.py`; `local_error.py` for convolutions):

    d_y = M d_x + e + r - r'.

For an entry c of the outputs let g be cotangents, one at each value, g = e_c at the outputs.
Whatever they are, summing gᵀd along the equations telescopes, since d = 0 at the arguments:

    d_c = Σ_equations [ g_yᵀ(e + r - r') + (Mᵀ g_y - g_x)ᵀ d_x ].

With g_x = Mᵀ g_y, which is the derivative in reverse, the second part vanishes. g is computed in
floating point, so it does not quite. Where M is a sum of n terms, |Mᵀ g_y - g_x| ≤ γ_n |M|ᵀ|g_y|,
and that part is at most γ_n ‖g_y‖₁ ‖M‖_∞ max|d_x|. So rounding in g enters only in product with d,
which was *seen* and is tiny. Where M is a choice among entries (max pooling), a derivative in
reverse may break ties otherwise than forward, and that part is computed as it is. A value that is
read several times adds its cotangents, which rounds: u ‖g‖₁ max|d|.

Products of cotangents that underflow are off by less than tiny(1 + max|M| + max|g|), n of them at
each entry, times |d|. There is no other assumption on g. All sums are in float64, inflated by 1 +
2⁻²⁰.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array

from convattn.networks.transformation.evaluation import COMPILE_QUICKLY
from convattn.networks.transformation.local_error import INFLATION, TINY
from convattn.networks.transformation.rounding_rules import (
    CHOICES,
    EXACT,
    KNOWN,
    LINEAR,
    MULTILINEAR,
    Operation,
    abs_gap,
    curvature,
    derivative,
    diagonal,
    gap,
    is_float,
    number_of_terms,
    rounding,
    slope,
    to_float64,
)
from convattn.operators.roundoff import gamma_or_infinite, unit_roundoff

ENTRIES = 10  # of the outputs, for which the bound is computed
REDUCED = frozenset({name for name in CHOICES if name.startswith(("reduce", "cum", "select_and"))})
Path = tuple[int, ...]


@dataclass(frozen=True)
class Value:
    """What both runs have for a variable.

    Attributes:
        left: Of the function.
        right: With attention; the same object where nothing differs yet.
        depends: Whether it depends on the arguments of the function.
        loops: The scans, by path, in whose steps it differs.
        number: What the tape calls it.
    """

    left: Any
    right: Any
    depends: bool = False
    loops: frozenset[Path] = frozenset()
    number: int = field(default_factory=count().__next__)

    @property
    def differs(self) -> bool:
        """Whether the runs have two arrays for it."""
        return self.left is not self.right

    @property
    def largest_gap(self) -> float:
        """max|d|."""
        return float(abs_gap(self.left, self.right).max(initial=0)) if self.differs else 0.0


class Step(NamedTuple):
    """An equation that the difference went through.

    Attributes:
        inputs, outputs: The values that differ.
        errors: |e| + |r| + |r'| of each output.
        pull: Mᵀ, on cotangents `[entries, *shape]` of the outputs.
        loose: γ_n ‖M‖_∞ max|d_x|.
        small: n·tiny·(1 + max|M|)·Σ|d_x|, what underflows.
        moved: M d_x of the output, where Mᵀ may be that of another choice.
        without_rule: What is not known of the equation: then there is no bound on what it reaches.
    """

    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    errors: tuple[np.ndarray | float, ...]
    pull: Callable[..., Sequence[Array | np.ndarray]]
    loose: float
    small: float
    moved: np.ndarray | None = None
    without_rule: str | None = None


class Tape:
    """The equations that the difference went through, in their order.

    Attributes:
        steps: One for each.
        parted: What the runs would have gone through differently, such as a loop.
    """

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.parted: set[str] = set()

    def note_unknown(self, name: str, outputs: Sequence[Value]) -> None:
        """Something that has no rule.

        Args:
            name: Of the primitive.
        """
        self.steps.append(Step((), tuple(outputs), (), tuple, 0.0, 0.0, None, name))

    def note(
        self,
        equation: Any,
        inputs: Sequence[Value],
        outputs: Sequence[Value],
        charged_already: np.ndarray | None = None,
    ) -> None:
        """An equation that both runs computed, or something in its place.

        Args:
            equation: Its M is meant.
            charged_already: |r| + |r'| of its output and γ_n |M||d|, where the rules do not tell.
        """
        changed = [value for value in outputs if value.differs]
        if not any(is_float(value.left) for value in changed):
            return  # of what is chosen otherwise, it matters what is chosen by it
        name = equation.primitive.name
        left = [value.left for value in inputs]
        indices = [
            index for index, value in enumerate(inputs) if value.differs and is_float(value.left)
        ]
        varying = tuple(inputs[index] for index in indices)
        moved = _choice_moved(equation, left, indices, varying) if name in REDUCED else None
        errors = (
            None
            if name not in KNOWN
            else _all_errors(equation, inputs, outputs, charged_already, moved)
        )
        if errors is None:
            self.note_unknown(name, outputs)
            return
        rows, terms = _size_of_map(equation, left, indices)
        terms = 0 if charged_already is not None else terms
        unit = unit_roundoff(outputs[0].left.dtype)
        most = sum(value.largest_gap for value in varying)
        total = sum(float(abs_gap(value.left, value.right).sum()) for value in varying)
        step = Step(
            varying,
            tuple(outputs),
            errors,
            _reversed_map(equation, left, indices),
            gamma_or_infinite(terms, unit) * rows * most if most else 0.0,
            2 * (terms + 1) * TINY * (1 + rows) * total,
            moved,
        )
        self.steps.append(step)

    def bounds(self, outputs: Sequence[Value]) -> tuple[np.ndarray, np.ndarray] | str:
        """The differences of some entries of the outputs, and the bounds on them.

        Those are taken that differ most, and those that are largest. The name of a primitive that
        has no rule, where the outputs depend on one, or of what parted the runs, or of the dtype of
        outputs that differ and are no real numbers.
        """
        if self.parted:
            return ", ".join(sorted(self.parted))
        for value in outputs:
            if value.differs and not is_float(value.left):
                return f"outputs of {value.left.dtype}"
        entries = _chosen_entries(outputs)
        cotangents: dict[int, np.ndarray] = {}
        values = {value.number: value for value in outputs}
        for number, value in values.items():
            if not is_float(value.left):
                continue
            start = np.zeros((len(entries), *value.left.shape), value.left.dtype)
            for row, (which, index) in enumerate(entries):
                if which == number:
                    start[(row, *index)] = 1
            cotangents[number] = start
        bound = np.zeros(len(entries))
        for step in reversed(self.steps):
            if not any(value.number in cotangents for value in step.outputs):
                continue
            if step.without_rule is not None:
                return step.without_rule
            taken = [
                cotangents.pop(
                    value.number, np.zeros((len(entries), *value.left.shape), np.float32)
                )
                for value in step.outputs
            ]
            for cotangent, error in zip(taken, step.errors, strict=True):
                bound += accumulated_error(cotangent, error)
            height = max(float(np.abs(to_float64(cotangent)).max(initial=0)) for cotangent in taken)
            length = np.sum([accumulated_error(cotangent, 1.0) for cotangent in taken], axis=0)
            with np.errstate(invalid="ignore"):
                bound += step.loose * length + step.small * (1 + height)
            input_cotangents = step.pull(*taken) if step.inputs else ()
            if step.moved is not None:
                bound += _mismatch(step, taken[0], input_cotangents)
            for value, own in zip(step.inputs, input_cotangents, strict=True):
                other = cotangents.get(value.number)
                total = np.asarray(own) if other is None else np.asarray(own) + other
                if other is not None:
                    unit = unit_roundoff(total.dtype)
                    bound += unit * accumulated_error(total, 1.0) * value.largest_gap
                cotangents[value.number] = total
        if not np.isfinite(bound).all():
            return "numbers that are not finite, or sums of too many terms for their dtype"
        differences = [
            float(abs_gap(values[which].left[index], values[which].right[index]))
            for which, index in entries
        ]
        return np.array(differences), bound * INFLATION


def _all_errors(
    equation: Any,
    inputs: Sequence[Value],
    outputs: Sequence[Value],
    known: np.ndarray | None,
    moved: np.ndarray | None,
) -> tuple[np.ndarray | float, ...] | None:
    """|e| + |r| + |r'| of each output; None where it is not known."""
    name = equation.primitive.name
    if not all(is_float(value.left) for value in outputs if value.differs):
        return None
    if len(outputs) > 1:
        return (0.0,) * len(outputs) if name in LINEAR and name in EXACT else None
    pairs, (output,) = [(value.left, value.right) for value in inputs], outputs
    terms: list[Any] = [curvature(equation, pairs, (output.left, output.right), moved), known]
    if known is None:
        lefts, rights = zip(*pairs, strict=True)
        terms = [
            terms[0],
            rounding(equation, lefts, output.left),
            rounding(equation, rights, output.right),
        ]
    return None if any(term is None for term in terms) else (sum(terms),)


def _choice_moved(
    equation: Any, left: Sequence[Any], indices: Sequence[int], varying: Sequence[Value]
) -> np.ndarray | None:
    """M d of a choice, in float64."""
    if not indices:
        return None
    gaps = [gap(value.left, value.right) for value in varying]
    return derivative(equation, left, indices, gaps)


def _chosen_entries(outputs: Sequence[Value]) -> list[tuple[int, tuple[int, ...]]]:
    """Entries of the outputs: by turns those that differ most, and the largest."""
    differing = [value for value in outputs if value.differs and is_float(value.left)]
    ranked: list[list[tuple[float, int, tuple[int, ...]]]] = [[], []]
    for value in differing:
        for criterion, sizes in enumerate(
            (abs_gap(value.left, value.right), np.abs(to_float64(value.left)))
        ):
            flat = sizes.ravel()
            for index in np.argsort(-flat, kind="stable")[:ENTRIES]:
                where = tuple(
                    int(coordinate) for coordinate in np.unravel_index(index, sizes.shape)
                )
                ranked[criterion].append((float(flat[index]), value.number, where))
    entries: dict[tuple[int, tuple[int, ...]], None] = {}
    in_order = (sorted(candidates, key=lambda entry: -entry[0]) for candidates in ranked)
    for pair in zip(*in_order, strict=True):
        entries |= dict.fromkeys(entry[1:] for entry in pair)
    return list(entries)[:ENTRIES]


def accumulated_error(cotangent: Array | np.ndarray, error: np.ndarray | float) -> np.ndarray:
    """Σ |g|·error for each entry, in float64."""
    if isinstance(error, float) and error == 0:
        return np.zeros(len(cotangent))
    sizes = (np.abs(to_float64(row)) for row in np.asarray(cotangent))
    with np.errstate(invalid="ignore"):  # an infinite error that nothing weighs: no bound
        return np.array([float((size * error).sum()) for size in sizes])


def _mismatch(step: Step, cotangent: np.ndarray, input_cotangents: Sequence[Any]) -> np.ndarray:
    """|g_yᵀ M d_x - g_xᵀ d_x| for each entry."""
    there = [float((to_float64(row) * step.moved).sum()) for row in np.asarray(cotangent)]
    here = np.zeros(len(cotangent))
    for value, own in zip(step.inputs, input_cotangents, strict=True):
        difference = gap(value.left, value.right)
        here += np.array([float((to_float64(row) * difference).sum()) for row in np.asarray(own)])
    return np.abs(np.array(there) - here)


def _reversed_map(
    equation: Any, values: Sequence[Any], differing: Sequence[int]
) -> Callable[..., Sequence[Array | np.ndarray]]:
    """Mᵀ for the operands that differ, on several cotangents at once."""
    diagonals = [diagonal(equation, values, index) for index in differing]
    if not any(factor is None for factor in diagonals):
        factors = [np.asarray(factor, equation.outvars[0].aval.dtype) for factor in diagonals]
        return lambda cotangents: [scaled(cotangents, factor) for factor in factors]
    operation, indices = Operation.of(equation), tuple(differing)
    return lambda *cotangents: _vjp(operation, indices, values, cotangents)


def scaled(cotangents: Array, factor: np.ndarray) -> np.ndarray:
    """Their product; infinity times zero is no number, and no bound."""
    with np.errstate(invalid="ignore", over="ignore"):
        return np.asarray(cotangents) * factor


@partial(jax.jit, static_argnames=("operation", "differing"), compiler_options=COMPILE_QUICKLY)
def _vjp(
    operation: Operation, differing: tuple[int, ...], values: Sequence[Any], cotangents: Any
) -> Sequence[Array]:
    """Mᵀ on cotangents `[entries, *shape]`; one program for all equations of the same sizes."""
    of = operation.along(values, differing)
    points = tuple(values[index] for index in differing)
    if operation.primitive.name in LINEAR | MULTILINEAR and len(differing) == 1:
        transposed: Any = jax.linear_transpose(of, *points)
    else:
        transposed = jax.vjp(of, *points)[1]
    return jax.vmap(transposed)(cotangents)


def _size_of_map(
    equation: Any, values: Sequence[Any], differing: Sequence[int]
) -> tuple[float, int]:
    """‖M‖_∞, or more, and how many terms an entry of Mᵀ g sums; 0 where that rounds nothing."""
    name = equation.primitive.name
    if name not in LINEAR | MULTILINEAR:
        if name in CHOICES:
            return 1.0, 0
        slopes = [slope(equation, values, index) for index in differing]
        return float(sum(np.abs(entries).max(initial=0) for entries in slopes)), 4
    result = equation.outvars[0].aval
    if name in LINEAR:
        smallest = min((values[index].size for index in differing), default=1)
        copies = result.size if name == "gather" else result.size // max(smallest, 1) + 1
        return float(number_of_terms(equation)), max(copies, 2) if copies > 1 else 1
    largest = max(float(np.abs(to_float64(value)).max(initial=0)) for value in values)
    if name == "mul":
        return 2 * largest, 2
    if name == "dot_general":
        terms = number_of_terms(equation)
        return terms * largest, max(value.size for value in values) // terms
    kernel = values[1].shape
    taps = math.prod(kernel) // min(kernel)  # of an output, and of a pixel, at most
    return taps * largest, taps if 1 not in differing else max(taps, math.prod(result.shape))
