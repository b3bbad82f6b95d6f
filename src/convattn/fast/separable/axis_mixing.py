"""Free heads of the separable back end: mix the rows, mix the columns, map the channels, add up.

    Y = Σ_h P_h M_h,    P_h = C_h U_h,    U_h = R_h X,

where X is `[batch, k, l, d]`, as images are, U is `[batch, i, l, d]`, P and Y are `[batch, i, j,
·]`. R mixes the rows of every image, two matrices of [i, k] and [k, (l d)]; C the columns of every
row of U, [j, l] and [l, d]; so that nothing moves between the three. With Y' the cotangent of Y and
H = Y' Mᵀ, of the shape of P,

    M' = Pᵀ Y',    C' = Σ H Uᵗ,    U' = Cᵗ H,    R' = Σ U' Xᵗ,    X' = Σ_h Rᵗ U',

the sums over images and, for C', rows. Nothing but the arguments is kept from the forward pass: U
and P are computed again, two mixings that cost less than storing an image for each head.

Heads are taken one after the other: side by side they would fill more than the cache (measured:
half as fast from 16 × 16 pixels on). For the same reason a CPU takes a few images at a time (nine
heads of 400 channels on 100 images of 16 × 16 pixels: 13 % less time of the processor). Where
there are several devices the batch stays whole, so that each has its share of it.

`axis_product` serves heads that share their mixings.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax
from jaxtyping import Float, Num

from convattn.fast.separable.axis_product import Arithmetic

Heads = tuple[Array, Array, Array]  # a row attention, a column attention and a map

CHUNK_BYTES = 2 * 2**20  # of tokens, in the cache beside what is made of them


@partial(jax.custom_vjp, nondiff_argnums=(0,))
def mix_mix_map(
    arithmetic: Arithmetic,
    rows: Float[Array, "heads i k"],
    columns: Float[Array, "heads j l"],
    maps: Num[Array, "heads features out_features"],
    tokens: Num[Array, "batch k l features"],
) -> Float[Array, "batch i j out_features"]:
    """Y of the module's formula.

    Args:
        rows, columns: R_h(i, k) and C_h(j, l).
        maps: M_h.
        tokens: X.

    >>> import numpy as np
    >>> mean, maps = np.full((1, 2, 2), 0.5, np.float32), np.full((1, 1, 1), 2.0, np.float32)
    >>> tokens = np.array([1.0, 2.0, 3.0, 6.0], np.float32).reshape(1, 2, 2, 1)
    >>> arithmetic = Arithmetic(np.dtype("float32"), "highest")
    >>> mix_mix_map(arithmetic, mean, mean, maps, tokens).ravel().tolist()
    [6.0, 6.0, 6.0, 6.0]
    """
    heads = (rows, columns, maps)

    def one_chunk(_: None, images: Array) -> tuple[None, Array]:
        def add(total: Array, head: Heads) -> tuple[Array, None]:
            return total + _one_head(arithmetic, *head, images), None

        shape = (images.shape[0], rows.shape[1], columns.shape[1], maps.shape[2])
        return None, lax.scan(add, jnp.zeros(shape, arithmetic.dtype), heads)[0]

    def at_a_time(size: int, tokens: Array) -> Array:
        return _together(lax.scan(one_chunk, None, _apart(tokens, size))[1])

    return _by_platform(at_a_time, tokens)


def chunk_size(batch: int, image_bytes: int, devices: int = 1) -> int:
    """How many images a CPU takes at a time: a divisor of the batch.

    It is all of them with several devices, and where the batch is a symbol.

    >>> chunk_size(100, 2**19), chunk_size(7, 2**20), chunk_size(100, 2**19, devices=8)
    (4, 1, 100)
    """
    if not isinstance(batch, int) or devices > 1:
        return batch
    most = max(1, min(batch, CHUNK_BYTES // max(1, image_bytes)))
    return next(size for size in range(most, 0, -1) if batch % size == 0)


def _by_platform(function: Callable[..., Any], tokens: Array, *others: Array) -> Any:
    """function(images at a time, tokens, …), decided where the program is lowered."""
    batch = tokens.shape[0]
    size = chunk_size(batch, tokens[0].nbytes, jax.device_count())
    if size == batch:
        return function(batch, tokens, *others)
    return lax.platform_dependent(
        tokens, *others, cpu=partial(function, size), default=partial(function, batch)
    )


def _apart(images: Array, size: int) -> Array:
    """[chunks, images, …]."""
    return images.reshape(-1, size, *images.shape[1:])


def _together(chunks: Array) -> Array:
    return chunks.reshape(-1, *chunks.shape[2:])


def _mixed(arithmetic: Arithmetic, row: Array, column: Array, tokens: Array) -> tuple[Array, Array]:
    """U as [(batch i), l, d] and P as [(batch i), j, d]."""
    batch, k, width, d = tokens.shape
    down = arithmetic("bik,bkx->bix", _for_each(row, batch), tokens.reshape(batch, k, -1))
    down = down.reshape(-1, width, d)
    return down, arithmetic("yjl,yld->yjd", _for_each(column, down.shape[0]), down)


def _for_each(weights: Array, count: int) -> Array:
    """The same matrix that many times."""
    return jnp.broadcast_to(weights, (count, *weights.shape))


def _one_head(
    arithmetic: Arithmetic, row: Array, column: Array, maps: Array, tokens: Array
) -> Array:
    _, mixed = _mixed(arithmetic, row, column, tokens)
    result = arithmetic("xd,do->xo", mixed.reshape(-1, maps.shape[0]), maps)
    return result.reshape(tokens.shape[0], row.shape[0], column.shape[0], -1)


def _one_head_backward(
    arithmetic: Arithmetic,
    row: Array,
    column: Array,
    maps: Array,
    tokens: Array,
    cotangent: Array,
) -> tuple[Array, Array, Array, Array]:
    """R', C', M' and the head's share of X'."""
    batch, k = tokens.shape[:2]
    down, mixed = _mixed(arithmetic, row, column, tokens)
    cotangent = cotangent.reshape(-1, maps.shape[1])
    to_maps = arithmetic("xd,xo->do", mixed.reshape(-1, maps.shape[0]), cotangent)
    to_mixed = arithmetic("xo,do->xd", cotangent, maps).reshape(mixed.shape)
    to_column = arithmetic("yjd,yld->yjl", to_mixed, down).sum(axis=0)
    to_down = arithmetic("yjl,yjd->yld", _for_each(column, down.shape[0]), to_mixed)
    to_down = to_down.reshape(batch, row.shape[0], -1)
    to_row = arithmetic("bix,bkx->bik", to_down, tokens.reshape(batch, k, -1)).sum(axis=0)
    to_tokens = arithmetic("bik,bix->bkx", _for_each(row, batch), to_down).reshape(tokens.shape)
    return to_row, to_column, to_maps, to_tokens


def _keep(
    arithmetic: Arithmetic, rows: Array, columns: Array, maps: Array, tokens: Array
) -> tuple[Array, tuple[Array, Array, Array, Array]]:
    result = mix_mix_map(arithmetic, rows, columns, maps, tokens)
    return result, (rows, columns, maps, tokens)


def _backward(
    arithmetic: Arithmetic, residuals: tuple[Array, Array, Array, Array], cotangent: Array
) -> Any:
    heads, tokens = residuals[:3], residuals[3]

    def one_chunk(sums: Any, chunk: tuple[Array, Array]) -> tuple[Any, Array]:
        images, image_cotangent = chunk

        def one(total: Array, head: Heads) -> tuple[Array, Any]:
            *to_head, to_images = _one_head_backward(arithmetic, *head, images, image_cotangent)
            return total + to_images, tuple(to_head)

        zeros = jnp.zeros(images.shape, arithmetic.dtype)
        to_images, to_heads = lax.scan(one, zeros, heads)
        return jax.tree.map(jnp.add, sums, to_heads), to_images

    def at_a_time(size: int, tokens: Array, cotangent: Array) -> tuple[Array, ...]:
        nothing = tuple(jnp.zeros(array.shape, arithmetic.dtype) for array in heads)
        chunks = (_apart(tokens, size), _apart(cotangent, size))
        to_heads, to_tokens = lax.scan(one_chunk, nothing, chunks)
        return (*to_heads, _together(to_tokens))

    cotangents = _by_platform(at_a_time, tokens, cotangent)
    return tuple(
        gradient.astype(primal.dtype)
        for gradient, primal in zip(cotangents, residuals, strict=True)
    )


mix_mix_map.defvjp(_keep, _backward)
