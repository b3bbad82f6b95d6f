"""What callers ask of a back end is read, or refused with what was given and what to do."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from convattn.fast.options import AttentionOptions, Dropout, read_dropout


@pytest.mark.parametrize("rate", [0.25, np.float32(0.25), jnp.asarray(0.25)])
@pytest.mark.parametrize("make_key", [jax.random.key, jax.random.PRNGKey])
def test_a_rate_with_a_key_is_read(rate, make_key):
    key = make_key(3)
    dropout = read_dropout(rate, key)
    assert isinstance(dropout, Dropout)
    assert dropout.key is key
    assert type(dropout.rate) is float
    assert dropout.rate == 0.25


@pytest.mark.parametrize("rate", [0, 0.0, np.float32(0)])
def test_the_rate_zero_is_no_dropout_and_needs_no_key(rate):
    assert read_dropout(rate, None) is None
    assert read_dropout(rate, jax.random.key(0)) is None


RATES = [1, 1.0, -0.1, 2.0, float("nan"), float("inf"), "half", None, np.array([0.1, 0.2])]
KEYS = [0, "seed", np.zeros(2), np.uint32(7), np.zeros((3, 2), np.uint32)]


@pytest.mark.parametrize(
    ("rate", "key", "message"),
    [
        *(
            (rate, jax.random.key(0), r"dropout_rate=.*expected a number in \[0, 1\)")
            for rate in RATES
        ),
        *((0.5, key, r"(?s)dropout_key=.*but expected one key") for key in KEYS),
        (0.5, None, r"dropout_rate=0\.5 without a dropout_key; pass jax"),
    ],
)
def test_what_is_no_rate_with_a_key_is_refused(rate, key, message):
    with pytest.raises(ValueError, match=message):
        read_dropout(rate, key)


def test_a_traced_rate_is_refused_with_the_remedy():
    with pytest.raises(ValueError, match="not traced; under jit make it a static argument"):
        jax.jit(lambda rate: read_dropout(rate, jax.random.key(0)).rate)(0.1)


@pytest.mark.parametrize("chunk", [1, 7, np.int64(7)])
def test_a_chunk_is_held_as_a_python_integer(chunk):
    stored = AttentionOptions(chunk=chunk).chunk
    assert type(stored) is int
    assert stored == chunk


@pytest.mark.parametrize("chunk", [0, -3, True, 2.5, "4"])
def test_another_chunk_is_refused(chunk):
    with pytest.raises(ValueError, match=r"chunk=.*but expected an integer ≥ 1"):
        AttentionOptions(chunk=chunk)
