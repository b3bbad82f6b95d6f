import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_dtype, assert_equal

from convattn.structures import mixed_product, rank_one_terms, sum_of_terms


@pytest.mark.parametrize(
    ("first", "second"), [((), ()), ((2,), ()), ((), (3,)), ((2, 3), (4,)), ((2, 3), (4, 1, 5))]
)
def test_it_is_equation_1(first, second) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.integers(-9, 10, (3, *first)), rng.integers(-9, 10, (3, *second))
    expected = sum(np.multiply.outer(x, y) for x, y in zip(a, b, strict=True))
    assert_equal(mixed_product(a, b), expected)
    exact = mixed_product(a.astype(object), b)
    assert isinstance(exact, np.ndarray)
    assert exact.dtype == object
    assert (exact == expected).all()


def test_dtype_and_accumulation() -> None:
    ones = jnp.ones(300, jnp.bfloat16)  # 300 = 296 + 4 is no bfloat16; summed in it, 256
    assert_dtype(mixed_product(ones, ones), jnp.bfloat16)
    assert_equal(mixed_product(ones, ones), jnp.asarray(300.0, jnp.bfloat16))
    assert_equal(jax.jit(mixed_product)(ones, ones), jnp.asarray(300.0, jnp.bfloat16))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [np.int64, object])
def test_terms_sum_to_the_product(kind) -> None:
    rng = np.random.default_rng(1)
    a = [[rng.integers(-5, 6, (rows, n)).astype(kind) for n in (2, 3)] for rows in (2, 1, 3)]
    b = [[rng.integers(-5, 6, (rows, n)).astype(kind) for n in (4,)] for rows in (1, 2, 2)]
    factors = rank_one_terms(a, b)
    assert [factor.shape for factor in factors] == [(10, 2), (10, 3), (10, 4)]
    tensors = [np.stack([np.asarray(sum_of_terms(terms)) for terms in part]) for part in (a, b)]
    expected = np.asarray(mixed_product(*tensors))
    assert (np.asarray(sum_of_terms(factors)) == expected).all()
    assert expected.any()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mixed_product([1, 2], [1, 2, 3]), "should begin with K"),
        (lambda: mixed_product(1, [1]), "should begin with K"),
        (lambda: mixed_product(np.array([1], object), [1, 2]), "should begin with K"),
        (lambda: rank_one_terms([], []), "at least one"),
        (lambda: rank_one_terms([([[1]],)], []), "a has 1 decompositions and b 0"),
        (
            lambda: rank_one_terms([([[1]],), ([[1, 2]],)], [([[1]],), ([[1]],)]),
            "but expected one",
        ),
        (lambda: sum_of_terms([]), "one matrix for each axis"),
        (lambda: sum_of_terms([[[1]], [[1], [2]]]), "one row for each term"),
        (lambda: sum_of_terms([[1]]), "one matrix for each axis"),
    ],
)
def test_what_does_not_fit_is_refused(call, message) -> None:
    with pytest.raises(ValueError, match=message):
        call()
