"""Masking in the log domain, and the softmax along the columns (A19, Section 3.1).

With a mask H of entries 0 and -∞, softmax(a + H) is zero where H is -∞ and elsewhere softmax(a)
divided by what its column keeps. A column that H blanks altogether keeps nothing: 0/0, which is NaN
as printed. It is refused here, or zero where that is asked for.

Scores are `[..., keys, queries]`, as A19 has them: a column is one query, and the softmax over its
keys is column-wise.
"""

from typing import Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Bool, Float, Num

from convattn.operators.arrays import promoted

Blank = Literal["refuse", "zero"]


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

    Source: A19, Section 3.1.

    >>> masked_scores(jnp.array([[3.0, jnp.nan]]), jnp.array([[True, False]])).tolist()
    [[3.0, -inf]]
    """
    if mask.dtype != np.bool_:
        raise ValueError(
            f"mask.dtype={mask.dtype}, but expected bool, True where a key may be attended to; an "
            "additive mask H of 0 and -∞ has it the other way round: pass the boolean mask, or add "
            "H to the scores"
        )
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
        mask: True where key m may influence query n.
        blank: What a column without any key means. "refuse" raises, and under `jit`, where nobody
            can look at the scores, leaves the NaN of 0/0, unless the mask is concrete; "zero" gives
            such a column weight zero and gradient zero.

    Returns:
        In at least float32; each column sums to one, or is zero.

    Source: A19, Section 3.1.

    >>> column_softmax(jnp.zeros((2, 2)), jnp.array([[True, True], [False, True]])).tolist()
    [[1.0, 0.5], [0.0, 0.5]]
    """
    masked = _floating(scores) if mask is None else masked_scores(scores, mask)
    if blank == "zero":
        empty = (masked == -jnp.inf).all(-2, keepdims=True)
        return jnp.where(empty, 0, jax.nn.softmax(jnp.where(empty, 0, masked), axis=-2))
    for keep in (mask, masked > -jnp.inf):
        if keep is None or isinstance(keep, jax.core.Tracer) or np.asarray(keep).any(-2).all():
            continue
        blanks = ~np.asarray(keep).any(-2)
        *batch, column = (int(index) for index in np.argwhere(blanks)[0])
        within = f" of scores[{', '.join(map(str, batch))}]" if batch else ""
        raise ValueError(
            f"column {column}{within} is masked everywhere, so its softmax is 0/0, not weights "
            f"({int(blanks.sum())} such columns); let at least one entry through, such as the "
            "diagonal (a self-loop), or pass blank='zero' for a column of zeros"
        )
    return jax.nn.softmax(masked, axis=-2)


def _floating(scores: Array) -> Array:
    return scores.astype(promoted(scores.dtype, jnp.float32))
