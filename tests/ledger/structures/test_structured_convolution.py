import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_dtype, assert_equal
from ledger.structures.basis_cases import NAMES, ORDERS, case, operands, slow_convolution

from convattn_ledger.structures import structured_convolution


@pytest.mark.slow
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", NAMES)
def test_every_order_computes_the_definition(name, order) -> None:
    basis, matrices = case(name)
    x, theta = operands(matrices)
    result = structured_convolution(
        x.astype(np.float32), basis, theta.astype(np.float32), order=order
    )
    assert_equal(result, slow_convolution(matrices, x, theta))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("dtype", ["bfloat16", "float64", "int32"])
def test_the_result_has_the_dtype_of_the_operands(order, dtype) -> None:
    basis, matrices = case("grid")
    x, theta = (jax.ShapeDtypeStruct(part.shape, jnp.dtype(dtype)) for part in operands(matrices))
    result = jax.eval_shape(
        lambda x, theta: structured_convolution(x, basis, theta, order=order), x, theta
    )
    assert_dtype(result, dtype)


def test_a_wide_basis_widens_the_result() -> None:
    basis, matrices = case("dense")
    x, theta = (jnp.asarray(part, jnp.bfloat16) for part in operands(matrices))
    assert_dtype(jax.eval_shape(structured_convolution, x, basis, theta), jnp.float32)


@pytest.mark.slow
@pytest.mark.parametrize("order", ORDERS)
def test_half_types_are_summed_in_float32(order) -> None:
    basis, _ = case("sequence")
    x = jnp.full((1, 6, 512), 1, jnp.bfloat16)  # 257 ones cannot be counted in bfloat16
    theta = jnp.full((4, 512, 1), 1, jnp.bfloat16)
    result = structured_convolution(x, basis, theta, order=order)
    assert_equal(result[0, :, 0], [1024, 1024, 1536, 1536, 1536, 1024])


@pytest.mark.slow
@pytest.mark.parametrize("order", ORDERS)
def test_gradients_do_not_depend_on_the_order(order) -> None:
    basis, matrices = case("sparse")
    x, theta = (jnp.asarray(part, jnp.float32) for part in operands(matrices))

    def total(x, basis, theta, order):
        return (structured_convolution(x, basis, theta, order=order) ** 2).sum()

    slopes = jax.grad(total, (0, 1, 2), allow_int=True)(x, basis, theta, order)
    expected = jax.grad(total, (0, 1, 2), allow_int=True)(x, basis, theta, "basis_first")
    assert_equal(slopes[0], expected[0])  # integers below 2^24
    assert_equal(slopes[1].values, expected[1].values)
    assert_equal(slopes[2], expected[2])
    assert float(jnp.abs(expected[2]).max()) < 2**24
    assert float(jnp.abs(expected[1].values).max()) < 2**24
