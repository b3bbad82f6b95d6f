"""How far the computed scores of an exact layer are off: the first part of the rounding bound.

Each encoding has it beside its scores (`score_error`).
"""

from convattn.encodings.majorants import ScoreError
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
    found: ScoreError = encoding.score_error(grid.number_of_keys)  # type: ignore[attr-defined]
    return found
