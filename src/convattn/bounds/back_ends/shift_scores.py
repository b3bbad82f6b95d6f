"""Majorants of scores that depend on the shift alone, encoding by encoding.

s⁺ is the score with every term made positive; its derivatives are those of the terms, made positive
as well (`scores.py`).
"""

from functools import singledispatch

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Float, Num

from convattn.encodings.bias import BiasEncoding
from convattn.encodings.enumerated import EnumeratedEncoding
from convattn.encodings.gaussian import GaussianEncoding
from convattn.encodings.learned import LearnedEncoding
from convattn.encodings.mixture import MixtureEncoding
from convattn.encodings.quadratic import QuadraticEncoding
from convattn.encodings.quadratic_grid import QuadraticGridEncoding
from convattn.encodings.relative import RelativeEncoding
from convattn.encodings.scalar import ScalarEncoding


def magnitude(parameter: Num[Array, "*shape"]) -> Num[Array, "*shape"]:
    """|parameter|, with the derivative one.

    >>> [float(part) for part in jax.value_and_grad(magnitude)(jnp.array(-3.0))]
    [3.0, 1.0]
    """
    return rising(parameter, parameter)


def rising(value: Array, parameter: Array) -> Array:
    """|value|, with the derivative one in `parameter`."""
    return jnp.abs(lax.stop_gradient(value)) + (parameter - lax.stop_gradient(parameter))


def distances(shifts: np.ndarray, centers: Array) -> Float[Array, "heads shifts axes"]:
    """|δ - Δ| on each axis."""
    return rising(centers[:, None, :] - shifts, centers[:, None, :])


@singledispatch
def shift_majorant(
    encoding: object, shifts: np.ndarray, number_of_keys: int
) -> Float[Array, "heads shifts"]:
    """s⁺ at each shift, of an encoding whose scores depend on the shift alone.

    Raises:
        ValueError: For an encoding that is not registered.

    >>> encoding = BiasEncoding(jnp.array([[-2.0]]), None, ((0,),))
    >>> shift_majorant(encoding, np.array([[0], [5]]), 3).tolist()
    [[2.0, 0.0]]
    """
    raise ValueError(
        f"no rounding bound is derived for the scores of this {type(encoding).__name__}; register "
        "its majorant with shift_majorant"
    )


@shift_majorant.register(QuadraticEncoding)
def _(encoding: QuadraticEncoding, shifts: np.ndarray, number_of_keys: int) -> Array:
    squares = distances(shifts, encoding.centers) ** 2
    return magnitude(encoding.alpha)[:, None] * squares.sum(axis=-1)


@shift_majorant.register(QuadraticGridEncoding)
def _(encoding: QuadraticGridEncoding, shifts: np.ndarray, number_of_keys: int) -> Array:
    squares = distances(shifts, encoding.head_centers) ** 2
    return (magnitude(encoding.head_alpha)[:, None] * squares).sum(axis=-1)


@shift_majorant.register(GaussianEncoding)
def _(encoding: GaussianEncoding, shifts: np.ndarray, number_of_keys: int) -> Array:
    far = distances(shifts, encoding.centers)
    scaled = jnp.einsum("hij,hsj->hsi", magnitude(encoding.root_precision), far)
    return (scaled**2).sum(axis=-1) / 2


@shift_majorant.register(LearnedEncoding)
def _(encoding: LearnedEncoding, shifts: np.ndarray, number_of_keys: int) -> Array:
    tables = tuple(magnitude(table) for table in encoding.tables)
    return LearnedEncoding(magnitude(encoding.query), tables).shift_scores(shifts, number_of_keys)


@shift_majorant.register(RelativeEncoding)
def _(encoding: RelativeEncoding, shifts: np.ndarray, number_of_keys: int) -> Array:
    vectors = magnitude(encoding.vectors(shifts))
    parts = magnitude(encoding.query), magnitude(encoding.position_key)
    return jnp.einsum("he,hde,sd->hs", *parts, vectors)


@shift_majorant.register(EnumeratedEncoding)
def _(encoding: EnumeratedEncoding, shifts: np.ndarray, number_of_keys: int) -> Array:
    codes = encoding.shift_codes(shifts)[:, None]
    squares = distances(codes, encoding.targets[:, None])[..., 0] ** 2
    return magnitude(encoding.alpha)[:, None] * squares


@shift_majorant.register(ScalarEncoding)
def _(encoding: ScalarEncoding, shifts: np.ndarray, number_of_keys: int) -> Array:
    logit = None if encoding.logit is None else -magnitude(encoding.logit)
    parts = magnitude(encoding.exponents), magnitude(encoding.log_bases)
    return ScalarEncoding(*parts, logit, encoding.offsets).shift_scores(shifts, number_of_keys)


@shift_majorant.register(BiasEncoding)
def _(encoding: BiasEncoding, shifts: np.ndarray, number_of_keys: int) -> Array:
    values = BiasEncoding(magnitude(encoding.values), None, encoding.offsets)
    table = values.shift_scores(shifts, number_of_keys)
    if encoding.leak is None:
        return table
    height, slope = jax.value_and_grad(
        lambda leak: jnp.log1p(number_of_keys * ((1 - leak) / leak))
    )(lax.stop_gradient(encoding.leak))
    return table * (height - slope * (encoding.leak - lax.stop_gradient(encoding.leak)))


@shift_majorant.register(MixtureEncoding)
def _(encoding: MixtureEncoding, shifts: np.ndarray, number_of_keys: int) -> Array:
    return MixtureEncoding(magnitude(encoding.weights), encoding.offsets).shift_scores(
        shifts, number_of_keys
    )
