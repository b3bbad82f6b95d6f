"""What rounding and curvature add: real differences of primitives are within the rules."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from convattn.networks.transformation.rounding_rules import (
    FUNCTIONS,
    KNOWN,
    ROUNDED,
    curvature,
    derivative,
    number_of_terms,
    rounding,
    to_float64,
)

RNG = np.random.default_rng(0)
LEFT = RNG.uniform(0.2, 0.9, (4, 6)).astype(np.float32)
NEAR = (LEFT + RNG.integers(-9, 10, LEFT.shape) * 2.0**-22).astype(np.float32)
OTHER = RNG.uniform(1.1, 2.0, LEFT.shape).astype(np.float32)
UNARY = {
    "exp": jnp.exp, "exp2": lax.exp2, "log": jnp.log, "log1p": jnp.log1p, "expm1": jnp.expm1,
    "tanh": jnp.tanh, "logistic": lax.logistic, "erf": lax.erf, "erfc": lax.erfc,
    "rsqrt": lax.rsqrt, "integer_pow": lambda x: lax.integer_pow(x, 3), "sin": jnp.sin,
    "cos": jnp.cos, "tan": lax.tan, "cbrt": lax.cbrt, "sinh": lax.sinh, "cosh": lax.cosh,
    "asinh": lax.asinh, "atanh": lax.atanh, "asin": lax.asin, "acos": lax.acos, "atan": lax.atan,
    "sign": lambda x: lax.sign(x - 0.5), "floor": lax.floor, "ceil": lax.ceil,
    "round": lax.round, "sqrt": lax.sqrt,
    "square": lax.square, "abs": jnp.abs, "neg": lax.neg,
    "max": lambda x: lax.max(x, np.float32(0.5)), "min": lambda x: lax.min(x, np.float32(0.5)),
    "clamp": lambda x: lax.clamp(np.float32(0.4), x, np.float32(0.6)),
    "reduce_sum": lambda x: lax.reduce(x, np.float32(0), lax.add, (1,)),
    "reduce_max": lambda x: lax.reduce(x, np.float32(-np.inf), lax.max, (1,)),
    "cumsum": lambda x: lax.cumsum(x, 1),
    "convert_element_type": lambda x: lax.convert_element_type(x, jnp.bfloat16),
}  # fmt: skip
BINARY = {
    "add": lax.add, "sub": lax.sub, "mul": lax.mul, "div": lax.div, "atan2": lax.atan2,
    "pow": lax.pow, "dot_general": lambda x, y: lax.dot_general(x, y, (((1,), (1,)), ((), ()))),
}  # fmt: skip


def only(function, *args):
    equations = jax.make_jaxpr(function)(*args).eqns
    return equations[-1]


def assert_explained(equation, pairs):
    """|y - y' - M d| ≤ |e| + |r| + |r'|, M and d in float64."""
    lefts, rights = zip(*pairs, strict=True)
    results = [equation.primitive.bind(*side, **equation.params) for side in (lefts, rights)]
    results = [each[0] if equation.primitive.multiple_results else each for each in results]
    bent = curvature(equation, pairs, tuple(results))
    sides = [rounding(equation, *both) for both in zip((lefts, rights), results, strict=True)]
    differing = [index for index, (one, other) in enumerate(pairs) if one is not other]
    gaps = [
        jnp.asarray(to_float64(pairs[index][0]) - to_float64(pairs[index][1]))
        for index in differing
    ]
    moved = derivative(equation, [jnp.asarray(to_float64(left)) for left in lefts], differing, gaps)
    left_over = np.abs(to_float64(results[0]) - to_float64(results[1]) - np.asarray(moved))
    allowed = bent + sum(sides) + 2.0**-50  # of this sum in float64
    assert (left_over <= allowed).all()
    unit = 2.0**-7 if results[0].dtype == jnp.bfloat16 else 2.0**-23
    assert float(np.max(allowed)) < 64 * unit * max(1, float(np.abs(to_float64(results[0])).max()))


@pytest.mark.parametrize("name", UNARY)
@pytest.mark.quick(13)
def test_primitives_of_one_operand(name):
    equation = only(UNARY[name], LEFT)
    assert equation.primitive.name == name
    if name in ("max", "min", "clamp"):  # literals are operands
        pairs = [(LEFT, NEAR)] if name != "clamp" else []
        literals = [atom.val for atom in equation.invars if hasattr(atom, "val")]
        pairs += [(literal, literal) for literal in literals]
        if name == "clamp":
            pairs.insert(1, (LEFT, NEAR))
    else:
        pairs = [(LEFT, NEAR)]
    assert_explained(equation, pairs)


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("differ", [(True, False), (False, True), (True, True)])
def test_primitives_of_two_operands(name, differ):
    other = (OTHER + 2.0**-20).astype(np.float32)
    pairs = [(LEFT, NEAR if differ[0] else LEFT), (OTHER, other if differ[1] else OTHER)]
    equation = only(BINARY[name], LEFT, OTHER)
    assert equation.primitive.name == name
    assert_explained(equation, pairs)


def test_every_elementary_function_has_a_case():
    acosh = {"acosh"}  # of numbers above 1
    assert FUNCTIONS - acosh <= {*UNARY, *BINARY}
    assert ROUNDED - {"add_any", "reduce_precision"} <= {*UNARY, *BINARY}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", sorted((FUNCTIONS & {*dir(np), "erfc"}) - {"pow", "atan2"}))
def test_elementary_functions_are_within_their_units_wherever_they_are_finite(name, dtype):
    scales = [np.linspace(-1, 1, 2001) * size for size in (1e-3, 0.5, 1, 3, 9, 25, 80, 300)]
    numbers = np.unique(np.concatenate(scales)).astype(dtype)
    exact = math.erfc if name == "erfc" else getattr(np, name)
    with np.errstate(all="ignore"):
        expected = np.array([exact(number) for number in numbers.astype(np.longdouble)])
    equation = only(getattr(lax, name), numbers)
    computed = equation.primitive.bind(numbers, **equation.params)
    allowed = rounding(equation, [numbers], computed) + 2 * np.finfo(float).eps * np.abs(expected)
    sides = np.isfinite(expected) & np.isfinite(computed)
    assert sides.sum() > 2000
    assert (np.abs(np.asarray(computed)[sides] - expected[sides]) <= allowed[sides]).all()


def test_a_choice_that_falls_differently_is_charged_with_what_it_changes():
    equation = only(jnp.where, LEFT > 0.5, LEFT, OTHER)
    equation = equation.params["jaxpr"].eqns[-1] if "jaxpr" in equation.params else equation
    which = LEFT > 0.5, NEAR > 0.6
    results = [np.where(side, case, OTHER) for side, case in zip(which, (LEFT, NEAR), strict=True)]
    pairs = [which, (OTHER, OTHER), (LEFT, NEAR)]
    bent = curvature(equation, pairs, tuple(results))
    expected = np.where(which[0] & ~which[1], np.abs(OTHER - NEAR), 0)
    np.testing.assert_allclose(bent, expected, rtol=0, atol=1e-7)
    assert expected.max() > 0.5


def test_terms_of_sums():
    window = only(lambda x: lax.reduce_window(x, 0.0, lax.add, (2, 3), (1, 1), "VALID"), LEFT)
    assert number_of_terms(window) == 6
    assert number_of_terms(only(lambda x: x @ x.T, LEFT)) == 6
    assert number_of_terms(only(lambda x: x.sum(), LEFT)) == 24


def test_what_has_no_rule_is_not_known():
    equation = only(jnp.fft.fft, LEFT)
    assert not {"fft", "cholesky", "while"} & KNOWN
    assert curvature(equation, [(LEFT, NEAR)], (LEFT, NEAR)) is None
    assert rounding(equation, [LEFT], LEFT) is None
