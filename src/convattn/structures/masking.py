"""Masking in the log domain, and softmax along the columns or the rows (A19, Section 3.1).

With a mask H of entries 0 and -∞, softmax(a + H) is zero where H is -∞ and elsewhere softmax(a)
divided by what its column keeps. A column that H blanks altogether keeps nothing: 0/0, which is NaN
as printed. It is refused here, or zero where that is asked for.

Scores are `[..., keys, queries]`, as A19 has them: a column is one query, and the softmax over its
keys is column-wise.
"""

from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import DTypeLike
from jaxtyping import Bool, Float, Num

from convattn.operators.arrays import promoted

Blank = Literal["refuse", "zero"]


def log_mask(
    mask: Bool[Array | np.ndarray, "*batch keys queries"], dtype: DTypeLike = jnp.float32
) -> Float[Array, "*batch keys queries"]:
    """H, the logarithm of a binary matrix: 0 where the mask is True, -∞ elsewhere.

    Raises:
        ValueError: For a mask of floats, as everywhere in this file.

    >>> log_mask(jnp.array([[True, False]])).tolist()
    [[0.0, -inf]]
    """
    _check_mask(mask)
    return jnp.where(mask, 0.0, -jnp.inf).astype(dtype)


def causal_mask(entries: int) -> Bool[Array, "keys queries"]:
    """True where the key is the query or one of its predecessors, m ≤ n: upper triangular.

    "Tokens do not have influence on their predecessors" (A19, Section 3.3).

    >>> causal_mask(2).tolist()
    [[True, True], [False, True]]
    """
    return jnp.triu(jnp.ones((entries, entries), bool))


def masked_scores(
    scores: Num[Array, "*batch keys queries"],
    mask: Bool[Array | np.ndarray, "*#batch keys queries"],
) -> Float[Array, "*batch keys queries"]:
    """a + H: -∞ where the mask is False, the score elsewhere, in at least float32.

    What is masked is replaced, not added to, so that NaN and +∞ are masked too.

    Raises:
        ValueError: For a mask of floats, which would be H itself: its zeros let through what a
            False here masks.

    Source: A19, Section 3.1.

    >>> masked_scores(jnp.array([[3.0, jnp.nan]]), jnp.array([[True, False]])).tolist()
    [[3.0, -inf]]
    """
    _check_mask(mask)
    return jnp.where(mask, _floating(scores), -jnp.inf)


def column_softmax(
    scores: Num[Array, "*batch keys queries"],
    mask: Bool[Array | np.ndarray, "*#batch keys queries"] | None = None,
    *,
    blank: Blank = "refuse",
) -> Float[Array, "*batch keys queries"]:
    """Softmax over the keys, column by column: e^a_mn / Σ_m' e^a_m'n.

    Args:
        scores: Finite, or -∞ where masked already.
        mask: True where key m may influence query n; of integers, those but 0 are True.
        blank: What a column without any key means. "refuse" raises, and under `jit`, where nobody
            can look at the scores, leaves the NaN of 0/0, unless the mask is concrete; "zero" gives
            such a column weight zero and gradient zero.

    Returns:
        In at least float32; each column sums to one, or is zero.

    Raises:
        ValueError: For a blank column under "refuse" wherever it can be seen, naming the first; for
            a mask of floats; and for another `blank`.

    Source: A19, Section 3.1.

    >>> column_softmax(jnp.zeros((2, 2)), jnp.array([[True, True], [False, True]])).tolist()
    [[1.0, 0.5], [0.0, 0.5]]
    """
    return _softmax(scores, mask, blank, -2, "column")


def row_softmax(
    scores: Num[Array, "*batch keys queries"],
    mask: Bool[Array | np.ndarray, "*#batch keys queries"] | None = None,
    *,
    blank: Blank = "refuse",
) -> Float[Array, "*batch keys queries"]:
    """Softmax over the queries, row by row: how a key divides its influence among the queries.

    Arguments and errors are those of `column_softmax`, with rows for columns.

    >>> row_softmax(jnp.zeros((1, 4))).tolist()
    [[0.25, 0.25, 0.25, 0.25]]
    """
    return _softmax(scores, mask, blank, -1, "row")


def _softmax(
    scores: Array, mask: Array | np.ndarray | None, blank: str, axis: int, name: str
) -> Array:
    if blank not in ("refuse", "zero"):
        raise ValueError(f"blank={blank!r}, but expected 'refuse' or 'zero'")
    masked = _floating(scores) if mask is None else masked_scores(scores, mask)
    if blank == "refuse":
        if mask is not None:
            _refuse_blank(mask, False, axis, name)
        _refuse_blank(masked, -np.inf, axis, name)
        return jax.nn.softmax(masked, axis=axis)
    empty = (masked == -jnp.inf).all(axis, keepdims=True)
    return jnp.where(empty, 0, jax.nn.softmax(jnp.where(empty, 0, masked), axis=axis))


def _check_mask(mask: Any) -> None:
    """Refuse what looks like H, floats or negative numbers; the dtype is known under `jit` too."""
    dtype = mask.dtype if hasattr(mask, "dtype") else np.asarray(mask).dtype
    whole = dtype == np.bool_ or jnp.issubdtype(dtype, jnp.integer)
    if whole and (isinstance(mask, jax.core.Tracer) or not (np.asarray(mask) < 0).any()):
        return
    raise ValueError(
        f"mask.dtype={dtype}{' with negative entries' if whole else ''}, but a mask should be "
        "boolean, True where a key may be attended to; an additive mask H of 0 and -∞ has it the "
        "other way round: pass the boolean mask, or add H to the scores"
    )


def _refuse_blank(array: Array | np.ndarray, nothing: bool | float, axis: int, name: str) -> None:
    """Refuse a row or column of nothing but `nothing`, if the array can be looked at."""
    if isinstance(array, jax.core.Tracer):
        return
    blanks = (np.asarray(array) == nothing).all(axis)
    if blanks.any():
        *batch, index = (int(part) for part in np.argwhere(blanks)[0])
        within = f" of scores[{', '.join(map(str, batch))}]" if batch else ""
        raise ValueError(
            f"{name} {index}{within} is masked everywhere, so its softmax is 0/0, not weights "
            f"({int(blanks.sum())} such {name}s); let at least one entry through, such as the "
            f"diagonal (a self-loop), or pass blank='zero' for a {name} of zeros"
        )


def _floating(scores: Array) -> Array:
    return scores.astype(promoted(scores.dtype, jnp.float32))
