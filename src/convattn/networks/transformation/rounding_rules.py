"""What rounding adds to the difference of two runs in each primitive, and what curvature adds.

Both runs compute the same primitive p, at x and at x', and d = x - x'. With M the derivative of p
at x, exactly

    p(x) - p(x') = M d + e,      and as computed  y - y' = M d + e + r - r'.

*Rounding*, |r|, with u the unit roundoff of the result:

- none where entries are moved, chosen or compared (`EXACT`);
- u|y| where one operation is rounded (`ROUNDED`), and `_ULPS`·u|y| of the elementary functions, an
  assumption on the library that computes them (`FUNCTIONS`). Of those that are computed as an
  exponential (`_EXPONENTIAL`) its argument is rounded twice: 2|log|y||·u|y| more. In float64 XLA's
  log1p, and what is computed by it, is off by up to 240u|y| (`_LOGARITHMIC`);
- γ_n Σ|terms| of n terms summed in any order (`_SUMS`).

*Curvature*, |e|:

- none where p is linear in what differs;
- of products that are linear in each factor, the product of both differences;
- elsewhere, by the mean value theorem, at most Σ_i |∂_i p(ξ) - ∂_i p(x)||d_i| with ξ between the
  two: twice the difference of the derivatives at both ends, which assumes that a derivative changes
  between two numbers that are as near as two runs are by no more than twice what it changes from
  end to end;
- where a choice falls differently, what it is: both values are known.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from convattn.networks.transformation.evaluation import COMPILE_QUICKLY, bind
from convattn.networks.transformation.local_error import TINY
from convattn.operators.roundoff import gamma_or_infinite, unit_roundoff

_ULPS = 8
_ULPS_LOGARITHMIC = 256


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_MOVES = _names(
    """reshape transpose broadcast_in_dim squeeze expand_dims slice dynamic_slice pad concatenate
    rev stack gather neg copy copy_p real split dynamic_update_slice device_put tile
    sharding_constraint optimization_barrier"""
)
LINEAR = _MOVES | _names(
    """reduce_sum cumsum reduce_window_sum add sub add_any convert_element_type reduce_precision
    scatter-add"""
)
MULTILINEAR = _names("mul dot_general conv_general_dilated")
CHOICES = _names(
    """max min reduce_max reduce_min reduce_window_max reduce_window_min clamp sort select_n abs
    cummax cummin sign floor ceil round scatter select_and_scatter_add"""
)
EXACT = (CHOICES | _MOVES) - {"select_and_scatter_add"}
ROUNDED = _names("add sub add_any mul div sqrt square convert_element_type reduce_precision")
FUNCTIONS = _names(
    """exp exp2 log log1p expm1 tanh logistic erf erfc rsqrt pow integer_pow sin cos tan atan2 cbrt
    sinh cosh asin acos atan asinh acosh atanh"""
)
_EXPONENTIAL = _names("exp2 expm1 erfc pow sinh cosh")
_LOGARITHMIC = _names("log1p atanh")
_SUMS = _names("reduce_sum cumsum reduce_window_sum dot_general scatter-add select_and_scatter_add")
SMOOTH = FUNCTIONS | _names("div sqrt square")
_ELEMENTWISE = SMOOTH | _names("add sub add_any neg mul max min abs clamp")
KNOWN = LINEAR | MULTILINEAR | CHOICES | SMOOTH


def number_of_terms(equation: Any) -> int:
    """How many terms an entry of the result sums."""
    parameters, operand = equation.params, equation.invars[0].aval
    name = equation.primitive.name
    if name == "reduce_sum":
        return math.prod(operand.shape[axis] for axis in parameters["axes"])
    if name == "cumsum":
        return operand.shape[parameters["axis"]]
    if name in ("reduce_window_sum", "select_and_scatter_add"):
        return math.prod(parameters["window_dimensions"])
    if name == "dot_general":
        (contracted, _), _ = parameters["dimension_numbers"]
        return math.prod(operand.shape[axis] for axis in contracted)
    if name == "scatter-add":
        return math.prod(equation.invars[2].aval.shape) + 1
    return 1


def rounding(equation: Any, values: Sequence[Any], result: Any) -> np.ndarray | float | None:
    """|r| of one run, float64, that goes with the shape of the result; None where it is not known.

    Args:
        values: The operands of that run.
        result: Its result.
    """
    name = equation.primitive.name
    if not jnp.issubdtype(result.dtype, jnp.floating):
        return 0.0
    unit = unit_roundoff(result.dtype)
    finite = np.isfinite(to_float64(result))  # else the runs agree, or their difference says so
    if name in _SUMS:
        chosen_by = values[1:] if name == "select_and_scatter_add" else ()
        sizes = [np.abs(np.asarray(value)) if is_float(value) else value for value in values]
        sizes[len(sizes) - len(chosen_by) :] = chosen_by
        (total,) = bind(equation, [*map(jnp.asarray, sizes)])
        terms = number_of_terms(equation)
        relative = gamma_or_infinite(terms, unit)
        with np.errstate(invalid="ignore"):  # infinity times zero: no bound
            return (
                relative * (1 + 2 * relative) * np.where(finite, to_float64(total), 0)
                + terms * TINY
            )
    if name in ROUNDED:
        return unit * np.abs(to_float64(result), where=finite, out=np.zeros(finite.shape)) + TINY
    if name in FUNCTIONS:
        tall = np.abs(to_float64(result), where=finite, out=np.zeros(finite.shape))
        logarithmic = name in _LOGARITHMIC and result.dtype == jnp.float64
        steps: Any = (_ULPS_LOGARITHMIC if logarithmic else _ULPS) + abs(
            equation.params.get("y", 1)
        )
        if name in _EXPONENTIAL:
            steps = steps + 2 * np.abs(np.log(np.maximum(tall, TINY)))
        return steps * unit * tall + TINY
    return 0.0 if name in EXACT else None


def curvature(
    equation: Any,
    pairs: Sequence[tuple[Any, Any]],
    results: tuple[Any, Any],
    moved: np.ndarray | None = None,
) -> np.ndarray | float | None:
    """|e|, float64; None where it is not known.

    Args:
        pairs: The operands in both runs, the same object where they do not differ.
        results: In both runs.
        moved: M d of a choice, where it is computed already.
    """
    name = equation.primitive.name
    differing = [index for index, (left, right) in enumerate(pairs) if left is not right]
    if not all(is_float(pairs[index][0]) for index in differing):
        return _chosen_otherwise(pairs, results) if name == "select_n" else None
    if name in LINEAR or (name in MULTILINEAR and len(differing) == 1):
        return 0.0
    if name in MULTILINEAR:
        first, second = (abs_gap(*pair) for pair in pairs)
        (product,) = bind(equation, [jnp.asarray(gap, results[0].dtype) for gap in (first, second)])
        return to_float64(product) * (1 + 2.0**-10)
    if name not in CHOICES and name not in SMOOTH:
        return None
    ends = [[pair[side] for pair in pairs] for side in (0, 1)]
    gaps = {index: gap(*pairs[index]) for index in differing}
    if name in CHOICES:
        if moved is None:
            moved = derivative(equation, ends[0], differing, [*gaps.values()])
        scale = max(float(np.abs(entries).max(initial=0)) for entries in gaps.values())
        rounded = 2.0**-48 * number_of_terms(equation) ** 2 * scale
        return np.abs(gap(*results) - moved) + rounded
    total: Any = 0.0
    for index in differing:
        slopes = [slope(equation, end, index) for end in ends]
        change = abs_gap(*slopes) + 2.0**-48 * (np.abs(slopes).sum(axis=0))
        sizes = np.abs(gaps[index])
        total = total + 2 * np.where(sizes == 0, 0, change) * sizes
    return total


def diagonal(equation: Any, values: Sequence[Any], index: int) -> np.ndarray | float | None:
    """M of an operand where it is diagonal: in float64, or exact; None where it is not."""
    name = equation.primitive.name
    if name not in _ELEMENTWISE or np.shape(values[index]) != equation.outvars[0].aval.shape:
        return None
    if name in ("add", "add_any", "sub", "neg"):
        return -1.0 if name == "neg" or (name == "sub" and index) else 1.0
    return np.asarray(values[1 - index]) if name == "mul" else slope(equation, values, index)


def slope(equation: Any, values: Sequence[Any], index: int) -> np.ndarray:
    """M d in float64, d being one everywhere in an operand."""
    return derivative(equation, values, [index], [np.ones(np.shape(values[index]))])


@dataclass(frozen=True)
class Operation:
    """A primitive with its parameters: what equations of the same program have in common."""

    primitive: Any
    parameters: Mapping[str, Any] = field(hash=False)

    @classmethod
    def of(cls, equation: Any) -> "Operation":
        """That of an equation."""
        return cls(equation.primitive, equation.params)

    def along(self, values: Sequence[Any], differing: Sequence[int]) -> Callable[..., Any]:
        """The results, a tuple, as a function of the operands that differ."""

        def of(*varying: Any) -> Any:
            operands = list(values)
            for index, value in zip(differing, varying, strict=True):
                operands[index] = value
            results = self.primitive.bind(*operands, **self.parameters)
            return tuple(results) if self.primitive.multiple_results else (results,)

        return of


def derivative(
    equation: Any, values: Sequence[Any], differing: Sequence[int], tangents: Sequence[Any]
) -> np.ndarray:
    """M d in float64: of the operands that differ, at these values."""
    with jax.enable_x64(True):
        ends = [to_float64(value) if is_float(value) else value for value in values]
        operation, indices = Operation.of(equation), tuple(differing)
        return np.asarray(_derivative(operation, indices, ends, tuple(tangents)))


@partial(jax.jit, static_argnames=("operation", "differing"), compiler_options=COMPILE_QUICKLY)
def _derivative(
    operation: Operation, differing: tuple[int, ...], values: Sequence[Any], tangents: Any
) -> Array:
    """M d; one program for all equations of the same sizes."""
    points = tuple(values[index] for index in differing)
    return jax.jvp(operation.along(values, differing), points, tangents)[1][0]


def _chosen_otherwise(
    pairs: Sequence[tuple[Any, Any]], results: tuple[Any, Any]
) -> np.ndarray | float:
    """What `select_n` adds where its choice differs: the other case, less the same one."""
    (which, _), *cases = pairs
    right = np.stack([to_float64(case[1]) for case in cases])
    index = np.broadcast_to(np.asarray(which).astype(int), right.shape[1:])
    same = np.take_along_axis(right, index[None], 0)[0]
    return abs_gap(results[1], same)


def is_float(value: Any) -> bool:
    """Whether an array has floating-point entries."""
    return jnp.issubdtype(jnp.result_type(value), jnp.floating)


def gap(left: Any, right: Any) -> np.ndarray:
    """x - x', in float64; 0 where both are the same infinity."""
    one, other = to_float64(left), to_float64(right)
    return np.subtract(one, other, where=one != other, out=np.zeros(one.shape))


def abs_gap(left: Any, right: Any) -> np.ndarray:
    """|x - x'|, in float64."""
    return np.abs(gap(left, right))


def to_float64(values: Any) -> np.ndarray:
    """On the host, in float64."""
    return np.asarray(values).astype(np.float64)
