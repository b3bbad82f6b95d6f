"""How a mixing step is run, and how far the run can be from the exact folded convolution.

Three ways to run the step W * x + b of the folded network, in float32: the trained model's own
layer (convolution, then batch normalisation), the folded convolution, and the attention layer. With
the nonnegative majorants

    G = |W| * |x| + |b|,    G' = G + |β| + |m·s|,    H = G + 2ε/(1-ε)·mean(|x|)·Σ_δ|W_δ|,

the mean over all N keys, and u = 2⁻²⁴, n = K²·C_in, each run differs from the exact step by at most

- *folded*: γ_(n+1) G: n products and a bias, summed in any order.
- *model*: γ_(n+16) G' + γ_1·G'. The convolution gives γ_n |W₀| * |x| before it is normalised; the
  differences, products and the square root of the norm (its reciprocal within 4 units in the last
  place, so 8 roundings) and its sums are 15 more roundings at most, relative to the same terms. The
  second part is that the folded numbers are themselves rounded (`folding.py`).
- *attention*: the Π - 1 of `convattn.bounds.rounding`, times H, plus what underflows. That bound
  covers the back end `shift` where T + 16 ≤ N (`convattn.evidence.fast_layers`), and `dense`
  always; they are chosen so.

Subnormal products and operands add less than 4·n·tiny(1 + max|W|)(1 + max|x|), tiny the smallest
normal number; those of attention, whose maps are at most K²/(1-ε)·max|W|, what `bounds.rounding`
has for its lengths. G itself is computed in float32: a sum of nonnegative products is too small by
at most γ_n, for which it is inflated. All else of the bound is in float64.
"""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
from flax import nnx
from jax import Array
from jaxtyping import Float

from convattn.attention import contraction_lengths
from convattn.bounds.rounding import relative_error
from convattn.bounds.score_error import score_error
from convattn.encodings.bias import BiasEncoding
from convattn.layer import AttentionLayer
from convattn.models.resnet import NormalizedConvolution
from convattn.networks.folding import ROUNDOFF, FoldedConvolution
from convattn.networks.steps import (
    Convolution,
    Network,
    Residual,
    apply_step,
    attend,
    convolve,
)
from convattn.roundoff import gamma
from convattn.shifts import TokenGrid

UNIT, TINY = 2.0**-24, 2.0**-126
MARGIN = 16  # more keys than offsets, from where the bound covers the back end `shift`


class LocalError(NamedTuple):
    """A run is off by at most relative·(G + beside + mean·J) + floor·(1 + max|W|)(1 + max|x|).

    **Fields:**

    - `relative`: beside the inflation.
    - `beside`: `[out]`, what is added to G.
    - `mean`: of Σ_k |x_k| Σ_δ |W_δ|, J of the formula.
    - `floor`: of (1 + max|W|)(1 + max|x|), what underflows.
    """

    relative: float
    beside: Float[np.ndarray, "out_channels"]
    mean: float
    floor: float


@dataclass(frozen=True)
class FoldedRun:
    """The folded convolution itself."""

    def apply(self, step: Convolution, images: Array) -> Array:
        """W * x + b."""
        return convolve(step.kernel, step.bias, images, step.stride)

    def error(self, step: Convolution, images: Array) -> LocalError:
        """How far that can be from exact."""
        return of_products(step)


@dataclass(frozen=True)
class ModelRun:
    """The layers of a trained model, outside training.

    **Fields:**

    - `layers`: by name. `folded`: what they were folded to.
    """

    layers: dict[str, NormalizedConvolution]
    folded: dict[str, FoldedConvolution]

    def apply(self, step: Convolution, images: Array) -> Array:
        """The layer of that name, normalised by its running statistics."""
        graph, state = nnx.split(self.layers[step.name])
        return normalized(graph, state, images)

    def error(self, step: Convolution, images: Array) -> LocalError:
        """How far that can be from the exact folded convolution."""
        relative = gamma(products(step) + 16, UNIT) + 2 * ROUNDOFF
        beside = self.folded[step.name].magnitude
        return of_products(step)._replace(relative=relative, beside=beside)


@dataclass(frozen=True)
class AttentionRun:
    """Attention layers. **Fields:** `layers`, by name."""

    layers: dict[str, AttentionLayer]

    def apply(self, step: Convolution, images: Array) -> Array:
        """The layer of that name, by the back end that the bound covers."""
        layer = self.layers[step.name]
        return attend(layer, images, covered_backend(layer, images))

    def error(self, step: Convolution, images: Array) -> LocalError:
        """How far that can be from the exact folded convolution.

        **Raises:** `ValueError` for a layer that is no exact form on pixels, and where weights
        underflow.
        """
        layer = self.layers[step.name]
        leak, grid = leak_of(layer), grid_of(layer, images)
        keys, score = grid.number_of_keys, score_error(layer.encoding, grid)
        exponent = score.absolute + UNIT * (score.range + 2 * score.absolute)
        if math.exp(-score.range - 2 * exponent) / keys < 2 * TINY:
            raise ValueError(
                f"{step.name}: at the leak {leak} weights underflow in float32, so there is no "
                "bound; use a larger leak"
            )
        single = np.dtype(np.float32)
        relative = relative_error(layer, grid, score, exponent, single, single, False)
        spread = 2 * leak / (1 - leak) / keys * (1 + 2 * gamma(keys + 16, UNIT))
        size = step.kernel.shape[0] * step.kernel.shape[1] / (1 - leak)
        lengths = math.prod(contraction_lengths(layer.value, layer.output, layer.heads, keys))
        floor = 16 * TINY * lengths * (1 + layer.heads) * (1 + size)
        return LocalError(relative * (1 + 2.0**-20), nothing_beside(step), spread, floor)


Runner = FoldedRun | ModelRun | AttentionRun


def products(step: Convolution) -> int:
    """K²·C_in, how many products an entry sums; at least K²·C_out, as many as its transpose sums.

    >>> import jax.numpy as jnp
    >>> products(Convolution(jnp.ones((3, 3, 2, 5)), jnp.ones(5)))
    45
    """
    rows, columns, inputs, outputs = step.kernel.shape
    return int(rows * columns * max(inputs, outputs))


def of_products(step: Convolution) -> LocalError:
    """γ_(n+1) G, and what underflows in n products and a sum."""
    terms = products(step)
    return LocalError(gamma(terms + 1, UNIT), nothing_beside(step), 0.0, 4 * (terms + 2) * TINY)


def nothing_beside(step: Convolution) -> Float[np.ndarray, "out_channels"]:
    """Zeros."""
    return np.zeros(step.kernel.shape[-1])


def magnitudes(step: Convolution, images: Array) -> Float[Array, "batch rows columns out_channels"]:
    """G = |W| * |x| + |b|, in float32, so too small by γ_n at most."""
    kernel, bias, images = (np.abs(np.asarray(part)) for part in (step.kernel, step.bias, images))
    return convolve(kernel, bias, images, step.stride)


def local_error(
    step: Convolution,
    images: Float[np.ndarray, "batch height width in_channels"],
    size: Float[np.ndarray, "batch rows columns out_channels"],
    error: LocalError,
) -> Float[np.ndarray, "batch rows columns out_channels"]:
    """What `LocalError` says, in float64 on the host, with G inflated.

    **Arguments:**

    - `size`: `magnitudes(step, images)`, or more.

    >>> import jax.numpy as jnp
    >>> step, two = Convolution(-jnp.ones((1, 1, 1, 1)), jnp.ones(1)), np.full((1, 1, 1, 1), 2.0)
    >>> half = LocalError(0.5, np.ones(1), 0.0, 0.0)
    >>> 2 <= local_error(step, two, np.full((1, 1, 1, 1), 3.0), half).item() < 2.0001
    True
    """
    magnitude, kernel = np.abs(images), np.abs(np.asarray(step.kernel).astype(np.float64))
    total = magnitude.sum(axis=(1, 2), keepdims=True) * error.mean
    whole = size * (1 + 2 * gamma(products(step) + 16, UNIT)) + error.beside
    whole = whole + total @ kernel.sum(axis=(0, 1))
    floor = error.floor * (1 + kernel.max()) * (1 + magnitude.max(initial=0))
    return error.relative * whole + floor


def leak_of(layer: AttentionLayer) -> float:
    """ε of a layer of S.finite on pixels.

    **Raises:** `ValueError` for another.
    """
    encoding = layer.encoding
    pixels = all(size == 1 for size in layer.patch_size)
    if not isinstance(encoding, BiasEncoding) or encoding.leak is None or not pixels:
        raise ValueError(
            f"a layer has a {type(encoding).__name__} and patches of {layer.patch_size}, but the "
            "bound is derived for pixels and leaky biases (exact=True, encoding='bias')"
        )
    return float(encoding.leak)


def grid_of(layer: AttentionLayer, images: Array) -> TokenGrid:
    """The tokens of images for a layer on pixels."""
    return TokenGrid(tuple(int(side) for side in images.shape[1:-1]), layer.ring)


def covered_backend(layer: AttentionLayer, images: Array) -> str:
    """`"shift"` where T + 16 ≤ N and N(1/ε - 1) ≥ 1, else `"dense"`.

    >>> import convattn as ca, jax.numpy as jnp
    >>> layer = ca.conv_to_attention(jnp.ones((3, 3, 1, 1)))
    >>> [covered_backend(layer, jnp.ones((1, n, n, 1))) for n in (2, 3)]
    ['dense', 'shift']
    """
    keys, leak = grid_of(layer, images).number_of_keys, leak_of(layer)
    offsets: Any = layer.encoding
    enough = len(offsets.offsets) + MARGIN <= keys and keys * (1 / leak - 1) >= 1
    return "shift" if enough else "dense"


def run_network(network: Network, run: Runner, images: Array) -> Array:
    """A folded network, its convolutions run in one of the three ways, step by step.

    >>> import jax.numpy as jnp
    >>> from convattn.networks.steps import Mean
    >>> network = (Convolution(jnp.ones((3, 3, 1, 2)), jnp.zeros(2)), Mean())
    >>> run_network(network, FoldedRun(), jnp.ones((1, 2, 2, 1))).tolist()
    [[4.0, 4.0]]
    """
    found = images
    for step in network:
        if isinstance(step, Convolution):
            found = run.apply(step, found)
        elif isinstance(step, Residual):
            found = run_network(step.branch, run, found) + run_network(step.shortcut, run, found)
        else:
            found = apply_step(step, found)
    return found


@partial(jax.jit, static_argnums=0)
def normalized(graph: Any, state: Any, images: Array) -> Array:
    """A `NormalizedConvolution` outside training, compiled once for all of the same sizes."""
    return nnx.merge(graph, state)(images, False)
