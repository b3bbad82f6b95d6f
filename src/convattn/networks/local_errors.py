"""How far one run of a mixing step can be from the exact folded convolution.

Three ways to run the step W * x + b of a folded network (`runs.py`), in float32 or float64: the
trained model's own layer (convolution, then batch normalisation), the folded convolution, and the
attention layer. With the nonnegative majorants

    G = |W| * |x| + |b|,    G' = G + |β| + |m·s|,    H = G + 2ε/(1-ε)·mean(|x|)·Σ_δ|W_δ|,

the mean over all N keys, u the unit roundoff of the dtype of x, and n = K²·C_in, each run differs
from the exact step by at most

- *folded*: γ_(n+1) G: n products and a bias, summed in any order.
- *model*: γ_(n+16) G' + 2ρ G'. The convolution gives γ_n |W₀| * |x| before it is normalised; the
  differences, products and the square root of the norm (its reciprocal within 4 units in the last
  place, so 8 roundings) and its sums are 15 more roundings at most, relative to the same terms. The
  second part is that the folded numbers are themselves rounded (`folding.py` has ρ).
- *attention*: the Π - 1 of `convattn.bounds.rounding`, times H, plus what underflows. That bound
  covers the back end `shift` where T + 16 ≤ N (`convattn.ledger.evidence.fast_layers`), and `dense`
  always; they are chosen so.

Subnormal products and operands add less than 4·n·tiny(1 + max|W|)(1 + max|x|), tiny the smallest
normal number of float32 whatever the dtype; those of attention, whose maps are at most
K²/(1-ε)·max|W|, what `bounds.rounding` has for its lengths.

*Majorants are computed in float32* whatever the dtype: a sum of n nonnegative products of operands
that were each rounded to it is too small by at most γ_(n+3), for which it is inflated. All else of
the bound is in float64.
"""

import math
from typing import NamedTuple

import jax
import numpy as np
from jax import Array
from jax.typing import DTypeLike
from jaxtyping import Float

from convattn.bounds.rounding import relative_error
from convattn.bounds.score_error import score_error
from convattn.encodings.bias import BiasEncoding
from convattn.encodings.layer import AttentionLayer
from convattn.networks.folding import FoldedConvolution, folding_error
from convattn.networks.steps import Convolution, Values, convolve
from convattn.operators.attention import contraction_lengths
from convattn.operators.roundoff import gamma, unit_roundoff

SINGLE, TINY = 2.0**-24, 2.0**-126  # of float32, in which majorants and cotangents are computed


class LocalError(NamedTuple):
    """A run is off by at most relative·(G + beside + mean·J) + floor·(1 + max|W|)(1 + max|x|).

    Attributes:
        relative: Beside the inflation.
        beside: `[out]`, what is added to G.
        mean: Of Σ_k |x_k| Σ_δ |W_δ|, J of the formula.
        floor: Of (1 + max|W|)(1 + max|x|), what underflows.
    """

    relative: float
    beside: Float[np.ndarray, "out_channels"]
    mean: float
    floor: float


def products(step: Convolution) -> int:
    """K²·C_in, how many products an entry sums; at least K²·C_out, as many as its transpose sums.

    >>> import jax.numpy as jnp
    >>> products(Convolution(jnp.ones((3, 3, 2, 5)), jnp.ones(5)))
    45
    """
    rows, columns, inputs, outputs = step.kernel.shape
    return int(rows * columns * max(inputs, outputs))


def of_products(step: Convolution, roundoff: float) -> LocalError:
    """γ_(n+1) G, and what underflows in n products and a sum.

    Args:
        roundoff: u.
    """
    terms = products(step)
    return LocalError(gamma(terms + 1, roundoff), nothing_beside(step), 0.0, 4 * (terms + 2) * TINY)


def of_model(step: Convolution, folded: FoldedConvolution, dtype: DTypeLike) -> LocalError:
    """(γ_(n+16) + 2ρ) G'."""
    roundoff = unit_roundoff(dtype)
    relative = gamma(products(step) + 16, roundoff) + 2 * folding_error(dtype)
    return of_products(step, roundoff)._replace(relative=relative, beside=folded.magnitude)


def of_attention(step: Convolution, layer: AttentionLayer, images: Values) -> LocalError:
    """(Π - 1) H.

    Raises:
        ValueError: For a layer that is no exact form on pixels, one of another dtype than the
            images, and where weights underflow.
    """
    leak, grid = leak_of(layer), layer.token_grid(images.shape[1:-1])
    keys, score = grid.number_of_keys, score_error(layer.encoding, grid)
    if not layer.dtype == score.dtype == images.dtype:
        raise ValueError(
            f"{step.name}: the layer is in {layer.dtype}, its scores in {score.dtype}, the images "
            f"in {images.dtype}, but the bound is derived for one dtype; convert the network in it"
        )
    exponent = score.absolute + unit_roundoff(score.dtype) * (score.range + 2 * score.absolute)
    if math.exp(-score.range - 2 * exponent) / keys < 2 * TINY:
        raise ValueError(
            f"{step.name}: at the leak {leak} weights underflow in float32, so there is no "
            "bound; use a larger leak"
        )
    relative = relative_error(layer, grid, score, exponent, images.dtype, images.dtype, False)
    spread = 2 * leak / (1 - leak) / keys * (1 + 2 * gamma(keys + 16, SINGLE))
    size = step.kernel.shape[0] * step.kernel.shape[1] / (1 - leak)
    lengths = math.prod(contraction_lengths(layer.value, layer.output, layer.heads, keys))
    floor = 16 * TINY * lengths * (1 + layer.heads) * (1 + size)
    return LocalError(relative * (1 + 2.0**-20), nothing_beside(step), spread, floor)


def nothing_beside(step: Convolution) -> Float[np.ndarray, "out_channels"]:
    """Zeros."""
    return np.zeros(step.kernel.shape[-1])


def magnitudes(
    step: Convolution, images: np.ndarray
) -> Float[Array, "batch rows columns out_channels"]:
    """G = |W| * |x| + |b|, in float32, so too small by γ_(n+3) at most."""
    kernel, bias, images = (
        np.abs(np.asarray(part)).astype(np.float32) for part in (step.kernel, step.bias, images)
    )
    with jax.enable_x64(False):  # one program, whatever the network is in
        return convolve(kernel, bias, images, step.stride)


def local_error(
    step: Convolution,
    images: Float[np.ndarray, "batch height width in_channels"],
    size: Float[np.ndarray, "batch rows columns out_channels"],
    error: LocalError,
) -> Float[np.ndarray, "batch rows columns out_channels"]:
    """What `LocalError` says, in float64 on the host, with G inflated.

    Args:
        size: `magnitudes(step, images)`, or more.

    >>> import jax.numpy as jnp
    >>> step, two = Convolution(-jnp.ones((1, 1, 1, 1)), jnp.ones(1)), np.full((1, 1, 1, 1), 2.0)
    >>> half = LocalError(0.5, np.ones(1), 0.0, 0.0)
    >>> 2 <= local_error(step, two, np.full((1, 1, 1, 1), 3.0), half).item() < 2.0001
    True
    """
    magnitude, kernel = np.abs(images), np.abs(np.asarray(step.kernel).astype(np.float64))
    total = magnitude.sum(axis=(1, 2), keepdims=True) * error.mean
    whole = size * (1 + 2 * gamma(products(step) + 16, SINGLE)) + error.beside
    whole = whole + total @ kernel.sum(axis=(0, 1))
    floor = error.floor * (1 + kernel.max()) * (1 + magnitude.max(initial=0))
    return error.relative * whole + floor


def leak_of(layer: AttentionLayer) -> float:
    """ε of a layer of S.finite on pixels.

    Raises:
        ValueError: For another.
    """
    encoding = layer.encoding
    pixels = all(size == 1 for size in layer.patch_size) and layer.padding is None
    if not isinstance(encoding, BiasEncoding) or encoding.leak is None or not pixels:
        raise ValueError(
            f"a layer has a {type(encoding).__name__}, patches of {layer.patch_size} and padding="
            f"{layer.padding}, but the bound is derived for pixels, leaky biases (exact=True, "
            "encoding='bias') and a ring of zeros"
        )
    return float(encoding.leak)
