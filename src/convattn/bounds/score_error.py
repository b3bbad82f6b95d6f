"""How far the computed scores of an exact layer are off: the first part of the rounding bound.

Each encoding has it beside its scores (`score_error`). The score of a register is log σ + log N:
two logarithms of eight roundings each, both stored in the dtype of the scores, and a sum, so that
it is off by at most γ_12 (|log σ| + log N).
"""

import math

import jax.numpy as jnp

from convattn.encodings.layer import AttentionLayer
from convattn.encodings.majorants import ScoreError
from convattn.encodings.mixture import MixtureEncoding
from convattn.operators.roundoff import EXP_ERROR, gamma, unit_roundoff
from convattn.operators.shifts import TokenGrid


def no_exact_form(encoding: object) -> ValueError:
    """The error to raise for anything but the exact forms of `conv_to_attention`."""
    return ValueError(
        f"no rounding bound is derived for this {type(encoding).__name__}, only for the exact "
        "forms (a bias with a leak, a scalar encoding without a logit); one-hot layers are "
        "compared exactly instead"
    )


def score_error(encoding: object, grid: TokenGrid) -> ScoreError:
    """The error of the positional scores, and of the gains.

    >>> import jax.numpy as jnp
    >>> from convattn.encodings.scalar import ScalarEncoding
    >>> from convattn.operators.roundoff import unit_roundoff
    >>> encoding = ScalarEncoding(jnp.arange(3.0), jnp.log(jnp.array([2.0])), None, ((0,),))
    >>> error = score_error(encoding, TokenGrid((9,), ((0, 0),)))
    >>> round(error.range, 3), round(error.absolute / error.range / unit_roundoff(error.dtype))
    (1.386, 11)
    """
    if not getattr(encoding, "is_exact_form", False):
        raise no_exact_form(encoding)
    error: ScoreError = encoding.score_error(grid.number_of_keys)  # type: ignore[attr-defined]
    return error


def layer_score_error(layer: AttentionLayer, grid: TokenGrid) -> ScoreError:
    """The same of a layer, whose register has a score as well.

    >>> import convattn as ca
    >>> layer = ca.conv_to_attention(jnp.ones((3, 1, 1)), border="register")
    >>> round(layer_score_error(layer, TokenGrid((9,), ((0, 0),))).range, 3)  # log(1 + 9·4)
    3.611
    """
    if layer.register is None:
        return score_error(layer.encoding, grid)
    if not layer.is_exact_form or not isinstance(layer.encoding, MixtureEncoding):
        raise no_exact_form(layer.encoding)
    encoding_error = layer.encoding.score_error(grid.number_of_keys)
    scores = layer.register.scores
    largest, tokens = float(jnp.abs(scores).max()), math.log(grid.number_of_keys)
    error = gamma(EXP_ERROR + 4, unit_roundoff(encoding_error.dtype)) * (largest + tokens)
    highest = max(encoding_error.range, float(scores.max()) + tokens)
    lowest = min(0.0, float(scores.min()) + tokens)
    return ScoreError(
        encoding_error.dtype,
        max(encoding_error.absolute, error),
        highest - lowest,
        encoding_error.gain,
    )
