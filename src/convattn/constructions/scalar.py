"""S.dp1: one positional feature already expresses every convolution, exactly.

**Claim.** Let r_δ = log t_δ for distinct positive rationals t_δ ≠ 1 at the T offsets and 0 at
every other shift, and v_h = h for h = 0, …, T. These T + 1 heads express every convolution
exactly at every query whose offsets are all keys.

**Proof.** Before normalisation head h has the row 1 + Σ_δ (t_δ^h - 1) e_(q+δ), and its sum is Z_h
= N + Σ_δ (t_δ^h - 1), the same at every such query. The numbers 1 and t_δ are distinct, so the
Lagrange polynomials L_δ(z) = Σ_h V_hδ z^h of degree T with L_δ(t_δ) = 1 and L_δ = 0 at the other
numbers exist. Give head h the map Z_h Σ_δ V_hδ M_δ. The layer's row for M_δ is then

    Σ_h V_hδ (1 + Σ_δ' (t_δ'^h - 1) e_(q+δ')) = L_δ(1)·1 + Σ_δ' (L_δ(t_δ') - L_δ(1)) e_(q+δ') =
    e_(q+δ). ∎

In the limit M → ∞ of r_δ = M + log t_δ only the offsets keep weight, and T heads v_h = 1, …, T
do, with Z_h = Σ_δ t_δ^h and L_δ of the form Σ_(h=1..T) V_hδ z^h.

It is a theorem, not a recommendation: undoing a Vandermonde matrix of positive numbers amplifies
rounding exponentially in T. `rounding_amplification` says by how much, exactly, and the
construction refuses where nothing would be left of the result.
"""

from fractions import Fraction
from functools import lru_cache

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import DTypeLike
from jaxtyping import Num

from convattn.constructions.geometry import ConvolutionGeometry
from convattn.encodings.base import score_dtype
from convattn.encodings.scalar import ScalarEncoding
from convattn.operators.attention import HIGHEST
from convattn.operators.roundoff import one_hot_sharpness

# Beyond so many offsets no dtype will do. The leading term of the middle L_δ at the largest node is
# (T + 1)^T / (⌊T/2⌋! ⌈T/2⌉!), at least half of that in the limit form, and κ is no less. It grows
# with T, and at T = 24 it exceeds 2⁴⁷, while κ ≤ 2⁴⁶ is asked for in float64.
MAX_OFFSETS = 24


def scalar_bases(count: int) -> tuple[int, ...]:
    """The t_δ: the integers 2, …, T + 1. They are distinct, positive and not one.

    >>> scalar_bases(3)
    (2, 3, 4)
    """
    return tuple(range(2, count + 2))


@lru_cache(maxsize=32)
def lagrange_coefficients(count: int, exact: bool) -> tuple[tuple[Fraction, ...], ...]:
    """V_hδ: row h, column δ, exactly.

    With `exact` the nodes are 1 and the t_δ and h runs from 0 to T; without, the nodes are 0 and
    the t_δ, so that the constant coefficient vanishes and h runs from 1 to T.

    >>> lagrange_coefficients(1, True), lagrange_coefficients(1, False)
    (((Fraction(-1, 1),), (Fraction(1, 1),)), ((Fraction(1, 2),),))
    """
    bases = scalar_bases(count)
    nodes = (1 if exact else 0, *bases)
    columns = []
    for base in bases:
        coefficients = [Fraction(1)]
        for node in nodes:
            if node != base:
                raised = [Fraction(0), *coefficients]
                lowered = [-node * c for c in coefficients] + [Fraction(0)]
                scale = base - node
                coefficients = [(a + b) / scale for a, b in zip(raised, lowered, strict=True)]
        columns.append(coefficients if exact else coefficients[1:])
    return tuple(zip(*columns, strict=True))


@lru_cache(maxsize=32)
def rounding_amplification(count: int, exact: bool = True) -> Fraction:
    """κ = max over δ and nodes z of Σ_h |V_hδ| z^h: how much a relative error in a weight can grow.

    The weights enter through Σ_h V_hδ z^h, which is 0 or 1; relative errors u in the terms make
    errors up to κ·u.

    >>> int(rounding_amplification(3)), float(f"{float(rounding_amplification(9)):.2g}")
    (140, 16000000.0)
    """
    rows = lagrange_coefficients(count, exact)
    first = 0 if exact else 1
    nodes = ((1,) if exact else ()) + scalar_bases(count)
    return max(
        sum((abs(row[column]) * node ** (first + h) for h, row in enumerate(rows)), Fraction(0))
        for column in range(count)
        for node in nodes
    )


def scalar_construction(
    maps: Num[Array, "offsets patch_in patch_out"],
    geometry: ConvolutionGeometry,
    sharpness: Num[Array, ""] | float | None = None,
    *,
    exact: bool = True,
) -> tuple[ScalarEncoding, Num[Array, "heads patch_in patch_out"]]:
    """The single feature, the heads, and their maps (without Z_h, which the layer multiplies in).

    Raises:
        ValueError: Where rounding in the maps' dtype would swallow the result.

    Source: S.dp1 of this project's ledger.
    """
    count = geometry.heads
    refuse_ill_conditioned(count, exact, maps.dtype)
    dtype = score_dtype(maps)
    coefficients = np.array(lagrange_coefficients(count, exact), dtype=np.float64)
    blocks = jnp.einsum(
        "ho,oij->hij", jnp.asarray(coefficients, dtype), maps.astype(dtype), precision=HIGHEST
    )
    exponents = jnp.arange(0 if exact else 1, count + 1, dtype=dtype)
    log_bases = jnp.asarray(np.log(np.array(scalar_bases(count), np.float64)), dtype)
    height = (
        None
        if exact
        else jnp.asarray(one_hot_sharpness(maps.dtype) if sharpness is None else sharpness, dtype)
    )
    return ScalarEncoding(exponents, log_bases, height, geometry.offsets), blocks.astype(maps.dtype)


def refuse_ill_conditioned(count: int, exact: bool, dtype: DTypeLike) -> None:
    """Refuse where κ·u > 2⁻⁷: less than two decimal digits would be right.

    u is the unit roundoff of `dtype`, in which the maps are stored. κ takes T³ rational operations,
    so beyond `MAX_OFFSETS` that many offsets stand in for T.

    Raises:
        ValueError: With the numbers and what to use instead.
    """
    roundoff = float(jnp.finfo(dtype).eps) / 2
    amplification = float(rounding_amplification(min(count, MAX_OFFSETS), exact))
    if amplification * roundoff > 2.0**-7:
        raise ValueError(
            f"encoding='scalar' reads {count} offsets and amplifies rounding by "
            f"{amplification:.1e} or more, which leaves nothing of the result in "
            f"{jnp.dtype(dtype).name} (unit roundoff {roundoff:.1e}); use encoding='bias', a "
            "smaller kernel, or a wider dtype"
        )
