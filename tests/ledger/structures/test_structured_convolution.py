"""Dtypes and gradients of the three orders; claim A19.orders has their results."""

from functools import partial

import jax
import jax.numpy as jnp
import pytest
from comparison import assert_dtype, assert_equal
from ledger.structures.basis_cases import ORDERS, case, operands

from convattn_ledger.structures import structured_convolution


@pytest.mark.parametrize("order", ORDERS)
def test_the_result_has_the_widest_dtype_of_operands_and_basis(order) -> None:
    for name, dtype, widest in (
        ("grid", "bfloat16", "bfloat16"),
        ("grid", "float64", "float64"),
        ("grid", "int32", "int32"),
        ("dense", "bfloat16", "float32"),
    ):
        basis, matrices = case(name)
        x, theta = (jax.ShapeDtypeStruct(part.shape, dtype) for part in operands(matrices))
        convolve = partial(structured_convolution, order=order)
        assert_dtype(jax.eval_shape(convolve, x, basis, theta), widest)


@pytest.mark.slow
@pytest.mark.parametrize("order", ORDERS)
def test_gradients_do_not_depend_on_the_order(order) -> None:
    basis, matrices = case("sparse")
    x, theta = (jnp.asarray(part, jnp.float32) for part in operands(matrices))

    def total(x, basis, theta, order):
        return (structured_convolution(x, basis, theta, order=order) ** 2).sum()

    def slopes(order):
        of_x, of_basis, of_theta = jax.grad(total, (0, 1, 2), allow_int=True)(
            x, basis, theta, order
        )
        return of_x, of_basis.values, of_theta

    for slope, expected in zip(slopes(order), slopes("basis_first"), strict=True):
        assert_equal(slope, expected)
        assert float(jnp.abs(expected).max()) < 2**24  # so these integers are exact
