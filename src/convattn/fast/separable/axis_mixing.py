"""One free head of the separable back end: mix the columns, mix the rows, map the channels.

    Y = P M,    P = R Uᵗ,    U = C X,

where X is [l, (k batch d)], U is [j, (k batch d)], Uᵗ is U with its rows outermost, [k, (j batch
d)], P is [i, (j batch d)], read as [(i j batch), d], and Y is [(i j batch), o]. With Y' the
cotangent of Y and H = Y' Mᵀ, of the shape of P,

    M' = Pᵀ Y',    R' = H (Uᵗ)ᵀ,    (Uᵗ)' = Rᵀ H,    C' = U' Xᵀ,    X' = Cᵀ U'.

Nothing but the arguments is kept from the forward pass: U and P are computed again, two mixings
that cost less than storing an image for each head (measured, from 16 × 16 to 64 × 64 pixels with
400 channels: as fast, in a half to a quarter of the memory). `axis_product` serves heads that share
their mixings.
"""

from functools import partial

import jax
from jax import Array
from jaxtyping import Float, Num

from convattn.fast.separable.axis_product import Arithmetic


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def mix_mix_map(
    arithmetic: Arithmetic,
    row: Float[Array, "i k"],
    column: Float[Array, "j l"],
    maps: Num[Array, "features out_features"],
    tokens: Num[Array, "l k batch features"],
) -> Float[Array, "i j batch out_features"]:
    """Y of the module's formula.

    **Arguments:**

    - `row`, `column`: R(i, k) and C(j, l).
    - `maps`: M.
    - `tokens`: X, columns before rows.

    >>> import numpy as np
    >>> mean, maps = np.full((2, 2), 0.5, np.float32), np.full((1, 1), 2.0, np.float32)
    >>> tokens = np.array([1.0, 2.0, 3.0, 6.0], np.float32).reshape(2, 2, 1, 1)
    >>> arithmetic = Arithmetic(np.dtype("float32"), "highest")
    >>> mix_mix_map(arithmetic, mean, mean, maps, tokens).ravel().tolist()
    [6.0, 6.0, 6.0, 6.0]
    """
    _, mixed = _mixed(arithmetic, row, column, tokens)
    return _mapped(arithmetic, mixed, row, column, maps, tokens)


def _mixed(arithmetic: Arithmetic, row: Array, column: Array, tokens: Array) -> tuple[Array, Array]:
    """Uᵗ and P."""
    width, k, batch, d = tokens.shape
    across = arithmetic("jl,lx->jx", column, tokens.reshape(width, -1))
    across = across.reshape(-1, k, batch, d).transpose(1, 0, 2, 3).reshape(k, -1)
    return across, arithmetic("ik,kx->ix", row, across)


def _mapped(
    arithmetic: Arithmetic, mixed: Array, row: Array, column: Array, maps: Array, tokens: Array
) -> Array:
    result = arithmetic("xd,do->xo", mixed.reshape(-1, maps.shape[0]), maps)
    return result.reshape(row.shape[0], column.shape[0], tokens.shape[2], -1)


def _keep(
    arithmetic: Arithmetic, row: Array, column: Array, maps: Array, tokens: Array
) -> tuple[Array, tuple[Array, ...]]:
    _, mixed = _mixed(arithmetic, row, column, tokens)
    return _mapped(arithmetic, mixed, row, column, maps, tokens), (row, column, maps, tokens)


def _backward(
    arithmetic: Arithmetic, kept: tuple[Array, ...], cotangent: Array
) -> tuple[Array, ...]:
    row, column, maps, tokens = kept
    (width, k, batch, d), j = tokens.shape, column.shape[0]
    across, mixed = _mixed(arithmetic, row, column, tokens)
    cotangent = cotangent.reshape(-1, maps.shape[1])
    to_maps = arithmetic("xd,xo->do", mixed.reshape(-1, d), cotangent)
    to_mixed = arithmetic("xo,do->xd", cotangent, maps).reshape(row.shape[0], -1)
    to_row = arithmetic("ix,kx->ik", to_mixed, across)
    to_across = arithmetic("ik,ix->kx", row, to_mixed)
    to_across = to_across.reshape(k, j, batch, d).transpose(1, 0, 2, 3).reshape(j, -1)
    to_column = arithmetic("jx,lx->jl", to_across, tokens.reshape(width, -1))
    to_tokens = arithmetic("jl,jx->lx", column, to_across).reshape(tokens.shape)
    found = (to_row, to_column, to_maps, to_tokens)
    return tuple(part.astype(given.dtype) for part, given in zip(found, kept, strict=True))


mix_mix_map.defvjp(_keep, _backward)
