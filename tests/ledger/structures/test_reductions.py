"""Grouped, depth-wise separable and controlled parameters, applied and built."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_dtype, assert_equal
from ledger.structures.basis_cases import case, slow_convolution

from convattn_ledger.structures import (
    controlled_convolution,
    controlled_theta,
    grouped_convolution,
    grouped_theta,
    separable_convolution,
    separable_theta,
)

FORMS = {
    "grouped": (grouped_theta, grouped_convolution),
    "separable": (separable_theta, separable_convolution),
    "controlled": (controlled_theta, controlled_convolution),
}


def parameters(form: str, size: int, p: int, q: int) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(3)
    shapes = {
        "grouped": [(size, 2, p // 2, q // 2)],
        "separable": [(size, p), (p, q)],
        "controlled": [(5, size), (5, p, q)],
    }
    return tuple(rng.integers(-5, 6, shape) for shape in shapes[form])


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["dense", "grid"])
def test_applying_is_convolving_with_theta(name, form) -> None:
    basis, matrices = case(name)
    build, apply = FORMS[form]
    own = parameters(form, basis.size, 2, 6)
    theta = np.asarray(build(*own))
    assert theta.shape == (basis.size, 2, 6)
    x = np.random.default_rng(4).integers(-5, 6, (3, basis.inputs, 2))
    typed = [jnp.asarray(part, jnp.float32) for part in (x, *own)]
    result = jax.jit(apply)(typed[0], basis, *typed[1:])
    assert_equal(result, slow_convolution(matrices, x, theta))


@pytest.mark.parametrize("form", FORMS)
def test_half_types_are_summed_in_float32(form) -> None:
    basis, _ = case("sequence")
    halves = [jnp.ones(part.shape, jnp.bfloat16) for part in parameters(form, 4, 512, 2)]
    result = FORMS[form][1](jnp.ones((1, 6, 512), jnp.bfloat16), basis, *halves)
    assert_dtype(result, jnp.bfloat16)
    assert_equal(result, FORMS[form][1](np.ones((1, 6, 512)), basis, *map(np.asarray, halves)))
