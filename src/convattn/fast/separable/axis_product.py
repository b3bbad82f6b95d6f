"""The inner product of the separable back end: mix the columns, map the channels, mix the rows.

For row attentions R_r, column attentions C_c and maps M_cr the image Y of X is

    Y_(ij) = Σ_r Σ_k R_r(i, k) Σ_c (Σ_l C_c(j, l) X_(kl)) M_cr,

one head for each pair (c, r). Columns are mixed once for each c and rows once for each r, so heads
on an m × m grid of centres take 2m mixings and not 2m². Every product is one of two matrices:

    U = C X      [(c j), (k b d)]       Z = U M      [(j k b), (r o)]       Y = R Z    [i, (j b o)]

with X given as [l, k, batch, d]. Between them only whole channel vectors move. The derivative is
written out in the same way, with Y' the cotangent of Y,

    R' = Y' Zᵀ,    Z' = Rᵀ Y',    M' = Uᵀ Z',    U' = Z' Mᵀ,    C' = U' Xᵀ,    X' = Cᵀ U'.

Z is kept from the forward pass and U computed again. Left to automatic differentiation of an
einsum, the sums over two axes at once are turned into copies: measured, twice the time.
"""

from functools import partial
from typing import NamedTuple

import jax
import numpy as np
from jax import Array, lax
from jaxtyping import Float, Num

from convattn.fast.products import product


class Arithmetic(NamedTuple):
    """The dtype of the sums and the precision of the products; hashable."""

    dtype: np.dtype
    precision: lax.PrecisionLike

    def __call__(self, formula: str, *operands: Array) -> Array:
        """An einsum."""
        return product(formula, *operands, dtype=self.dtype, precision=self.precision)


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def mix_map_mix(
    arithmetic: Arithmetic,
    rows: Float[Array, "row_groups i k"],
    columns: Float[Array, "column_groups j l"],
    maps: Num[Array, "column_groups features row_groups out_features"],
    tokens: Num[Array, "l k batch features"],
) -> Float[Array, "i j batch out_features"]:
    """Y of the module's formula.

    Args:
        rows, columns: R_r(i, k) and C_c(j, l).
        maps: M_cr.
        tokens: X, columns before rows.

    >>> arithmetic = Arithmetic(np.dtype("float32"), "highest")
    >>> mean = np.full((1, 2, 2), 0.5, np.float32)
    >>> tokens = np.array([1.0, 2.0, 3.0, 6.0], np.float32).reshape(2, 2, 1, 1)
    >>> maps = np.full((1, 1, 1, 1), 2.0, np.float32)
    >>> mix_map_mix(arithmetic, mean, mean, maps, tokens).ravel().tolist()
    [6.0, 6.0, 6.0, 6.0]
    """
    return _forward(arithmetic, rows, columns, maps, tokens)[0]


def _forward(
    arithmetic: Arithmetic, rows: Array, columns: Array, maps: Array, tokens: Array
) -> tuple[Array, Array]:
    """Y as [i, j, batch, o], and Z as [(r k), (j batch o)]."""
    (r, i, k), (c, d, _, o) = rows.shape, maps.shape
    j, batch = columns.shape[1], tokens.shape[2]
    mixed = _mixed_columns(arithmetic, columns, tokens)
    mapped = arithmetic("xd,do->xo", mixed, maps.reshape(c * d, r * o))
    mapped = mapped.reshape(j, k, batch, r, o).transpose(3, 1, 0, 2, 4).reshape(r * k, -1)
    result = arithmetic("ik,kx->ix", _beside(rows), mapped)
    return result.reshape(i, j, batch, o), mapped


def _mixed_columns(arithmetic: Arithmetic, columns: Array, tokens: Array) -> Array:
    """U as [(j k batch), (c d)]."""
    (c, j, width), (_, k, batch, d) = columns.shape, tokens.shape
    mixed = arithmetic("jl,lx->jx", columns.reshape(c * j, width), tokens.reshape(width, -1))
    return mixed.reshape(c, j, k, batch, d).transpose(1, 2, 3, 0, 4).reshape(-1, c * d)


def _beside(rows: Array) -> Array:
    """R as [i, (r k)]."""
    return rows.transpose(1, 0, 2).reshape(rows.shape[1], -1)


def _keep(
    arithmetic: Arithmetic, rows: Array, columns: Array, maps: Array, tokens: Array
) -> tuple[Array, tuple[Array, ...]]:
    result, mapped = _forward(arithmetic, rows, columns, maps, tokens)
    return result, (rows, columns, maps, tokens, mapped)


def _backward(
    arithmetic: Arithmetic, residuals: tuple[Array, ...], cotangent: Array
) -> tuple[Array, ...]:
    rows, columns, maps, tokens, mapped = residuals
    (r, i, k), (c, j, width), (_, d, _, o) = rows.shape, columns.shape, maps.shape
    batch = tokens.shape[2]
    cotangent = cotangent.reshape(i, -1)
    to_rows = arithmetic("ix,kx->ik", cotangent, mapped)
    to_rows = to_rows.reshape(i, r, k).transpose(1, 0, 2)
    to_mapped = arithmetic("ik,ix->kx", _beside(rows), cotangent)
    to_mapped = to_mapped.reshape(r, k, j, batch, o).transpose(2, 1, 3, 0, 4).reshape(-1, r * o)
    mixed = _mixed_columns(arithmetic, columns, tokens)
    to_maps = arithmetic("xd,xo->do", mixed, to_mapped)
    to_mixed = arithmetic("xo,do->xd", to_mapped, maps.reshape(c * d, r * o))
    to_mixed = to_mixed.reshape(j, k, batch, c, d).transpose(3, 0, 1, 2, 4).reshape(c * j, -1)
    to_columns = arithmetic("jx,lx->jl", to_mixed, tokens.reshape(width, -1))
    to_tokens = arithmetic("jl,jx->lx", columns.reshape(c * j, width), to_mixed)
    cotangents = (to_rows, to_columns, to_maps, to_tokens)
    return tuple(
        gradient.reshape(primal.shape).astype(primal.dtype)
        for gradient, primal in zip(cotangents, (rows, columns, maps, tokens), strict=True)
    )


mix_map_mix.defvjp(_keep, _backward)
