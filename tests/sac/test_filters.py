import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal
from sac.random_parameters import bank_of
from sac.slow_definitions import as_printed, printed_star


def integers(*shape, seed=0):
    return np.random.default_rng(seed).integers(-4, 5, shape)


@pytest.mark.slow
@pytest.mark.parametrize("size", [(2, 3), (1, 4)])
def test_filters_are_definition_2(size) -> None:
    x, filters = integers(2, 6, 7, 3), integers(2, *size, 3, 4, seed=1)
    bank = bank_of(jnp.asarray(x), jnp.asarray(filters), stride=(1, 1), dilation=(1, 1))
    for image in range(2):
        for head in range(2):
            expected = printed_star(x[image], as_printed(filters[head]))
            assert_equal(bank[image, :, :, head], expected)


@pytest.mark.slow
def test_stride_keeps_every_other_pixel() -> None:
    x, filters = integers(1, 6, 7, 2), integers(3, 2, 3, 2, 4, seed=1)
    full = bank_of(jnp.asarray(x), jnp.asarray(filters), stride=(1, 1), dilation=(2, 1))
    coarse = bank_of(jnp.asarray(x), jnp.asarray(filters), stride=(3, 2), dilation=(2, 1))
    assert_equal(coarse, full[:, ::3, ::2])


@pytest.mark.parametrize(("width", "dilation"), [(2, 1), (3, 2)])
def test_causal_filters_end_at_the_position(width, dilation) -> None:
    x, filters = integers(2, 8, 3), integers(2, width, 3, 4, seed=1)
    bank = bank_of(
        jnp.asarray(x), jnp.asarray(filters), stride=(2,), dilation=(dilation,), causal=True
    )
    expected = np.zeros((2, 4, 2, 4), int)
    for cell in range(4):
        for tap in range(width):
            source = 2 * cell - dilation * (width - 1 - tap)
            if source >= 0:
                expected[:, cell] += np.einsum("bi,hif->bhf", x[:, source], filters[:, tap])
    assert_equal(bank, expected)
