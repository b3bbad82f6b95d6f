from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal
from sac.random_parameters import apply, apply_multiscale, integers, sac, scores_of

from convattn.sac import EvenBias, MultiscaleParameters, as_sequence
from convattn.sac.attend import attend
from convattn.sac.self_attentive_convolution import flat_bank

TOKENS = integers(9, 1, 8, 3)


def soft(parameters):
    """Scores below 30, so that no weight underflows: what can be seen is seen."""
    return replace(parameters, query=parameters.query / 256)


def touched(operator):
    """Which outputs depend on which tokens: where the Jacobian is not exactly zero."""
    jacobian = jax.jit(jax.jacobian(operator))(TOKENS)[0, :, :, 0]
    return (np.asarray(jacobian) != 0).any(axis=(1, 3))


def multiscale(dilation):
    scales = tuple(
        replace(
            soft(sac(10 * i, (1, width), ordinary=True)),
            position=EvenBias(integers(i, 2, 1, 8)),
            dilation=(1, dilation),
        )
        for i, width in enumerate((1, 2, 3))
    )
    return as_sequence(MultiscaleParameters(scales, integers(99, 12, 4)), causal=True)


@pytest.mark.slow
def test_the_causal_form_sees_no_later_token() -> None:
    """The Jacobian of output i by token j is exactly zero for j > i, and nowhere else."""
    parameters = multiscale(dilation=2)
    assert_equal(touched(lambda x: apply_multiscale(parameters, x)), np.tri(8, dtype=bool))


@pytest.mark.slow
def test_a_later_token_changes_nothing_to_the_last_bit() -> None:
    parameters = multiscale(dilation=1)
    before = apply_multiscale(parameters, TOKENS)
    for token in range(1, 8):
        after = apply_multiscale(parameters, TOKENS.at[0, token].add(integers(token, 3) + 7))
        assert_equal(after[:, :token], before[:, :token])
        assert (np.asarray(after[:, token]) != np.asarray(before[:, token])).any()


def test_a_causal_mask_on_centred_filters_leaks() -> None:
    """Width 3 reads one token ahead: with the mask alone the next token is seen."""
    wide = as_sequence(soft(sac(0, (1, 3))))
    parameters = replace(wide, position=EvenBias(jnp.zeros((2, 1))))

    def masked(x):
        scores, _ = scores_of(parameters, x)
        values = flat_bank(parameters, x, parameters.value, (1,))
        return attend(scores, values, parameters.output, jnp.tri(8, dtype=bool))

    assert_equal(touched(masked), np.tri(8, k=1, dtype=bool))


def test_1_by_m_is_the_operator_of_sequences() -> None:
    image = replace(sac(0, (1, 3), ordinary=True), position=EvenBias(integers(7, 2, 1, 8)))
    image = replace(image, stride=(1, 2), key_stride=(1, 2))
    assert_equal(apply(as_sequence(image), TOKENS), apply(image, TOKENS[:, None])[:, 0])


def test_causal_with_stride_sees_the_positions_up_to_its_own() -> None:
    parameters = replace(
        as_sequence(soft(sac(0, (1, 2))), causal=True), stride=(2,), key_stride=(2,)
    )
    assert_equal(touched(lambda x: apply(parameters, x)), np.tri(8, dtype=bool)[::2])
