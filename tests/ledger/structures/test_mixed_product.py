import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_dtype, assert_equal

from convattn_ledger.structures import mixed_product


@pytest.mark.parametrize(
    ("first", "second"), [((), ()), ((2,), ()), ((), (3,)), ((2, 3), (4, 1, 5))]
)
def test_it_is_equation_1(first, second) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.integers(-9, 10, (3, *first)), rng.integers(-9, 10, (3, *second))
    expected = sum(np.multiply.outer(x, y) for x, y in zip(a, b, strict=True))
    assert_equal(mixed_product(a, b), expected)
    exact = mixed_product(a.astype(object), b)
    assert isinstance(exact, np.ndarray)
    assert (exact == expected).all()


def test_halves_are_summed_in_float32() -> None:
    ones = jnp.ones(300, jnp.bfloat16)  # 300 = 296 + 4 is no bfloat16; summed in it, 256
    assert_dtype(mixed_product(ones, ones), jnp.bfloat16)
    assert_equal(mixed_product(ones, ones), jnp.asarray(300.0, jnp.bfloat16))
