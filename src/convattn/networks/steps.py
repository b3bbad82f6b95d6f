"""A network as data: a tuple of steps, each a pytree, and one function that applies them.

Two networks are built of these: a residual network whose batch normalisation is folded into its
convolutions, and the same network with an attention layer in place of every convolution. They have
the same steps but for those.
"""

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jaxtyping import Float

from convattn.constructions.two_layers import TwoLayers
from convattn.encodings.layer import AttentionLayer
from convattn.fast.application import apply_attention
from convattn.operators.attention import HIGHEST


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Convolution:
    """Σ_δ X_(q+δ) W_δ + b at every stride-th pixel, with zeros outside the image.

    Attributes:
        kernel: HWIO.
        bias: `[out]`.
        stride: The same on both axes.
        name: For reports.
    """

    kernel: Float[Array, "rows columns in_channels out_channels"]
    bias: Float[Array, "out_channels"]
    stride: int = field(default=1, metadata={"static": True})
    name: str = field(default="", metadata={"static": True})


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Attention:
    """A layer of attention on images, or two that are one convolution.

    Attributes:
        layer, name: The layer, and what reports call it.
    """

    layer: AttentionLayer | TwoLayers
    name: str = field(default="", metadata={"static": True})


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Relu:
    """max(X, 0), entry by entry."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Residual:
    """The sum of two chains of steps with the same input; an empty one passes it on.

    Attributes:
        branch, shortcut: Both of type `Network`.
    """

    branch: tuple[Any, ...]
    shortcut: tuple[Any, ...] = ()


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Mean:
    """The mean of all pixels, which is what a uniform head sees from everywhere."""


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Linear:
    """X W + b.

    Attributes:
        kernel: `[in, out]`.
        bias: `[out]`.
    """

    kernel: Float[Array, "features out_features"]
    bias: Float[Array, "out_features"]


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Scaling:
    """(X - shift)·scale for each channel: how bytes of images become what a network was trained on.

    Attributes:
        shift, scale: `[channels]`.
    """

    shift: Float[Array, "channels"]
    scale: Float[Array, "channels"]


Step = Convolution | Attention | Relu | Residual | Mean | Linear | Scaling
Network = tuple[Step, ...]
Values = Array | np.ndarray  # of activations; on the host where that is cheaper than compiling


def apply_network(
    network: Network, images: Float[Array, "batch height width channels"], *, backend: str = "auto"
) -> Float[Array, "batch classes"]:
    """The steps of a network, one after the other; of any image size, and under jit.

    Args:
        backend: For the attention layers, as in `apply_attention`.

    Raises:
        ValueError: For images that a layer does not take.

    >>> network = (Convolution(jnp.ones((3, 3, 1, 2)), jnp.zeros(2)), Relu(), Mean())
    >>> apply_network(network, jnp.ones((1, 2, 2, 1))).tolist()
    [[4.0, 4.0]]
    """
    found = images
    for step in network:
        found = apply_step(step, found, backend=backend)
    return found


def apply_step(step: Step, images: Array, *, backend: str = "auto") -> Array:
    """One step.

    Raises:
        ValueError: For what is no step.
    """
    match step:
        case Convolution(kernel, bias, stride):
            return convolve(kernel, bias, images, stride)
        case Attention(layer):
            return attend(layer, images, backend)
        case Relu():
            return jax.nn.relu(images)
        case Residual(branch, shortcut):
            left = apply_network(branch, images, backend=backend)
            return left + apply_network(shortcut, images, backend=backend)
        case Mean():
            return images.mean(axis=(1, 2))
        case Linear(kernel, bias):
            return multiply(kernel, bias, images)
        case Scaling(shift, scale):
            return (images.astype(shift.dtype) - shift) * scale
    raise ValueError(f"{type(step).__name__} is no step of a network")


@partial(jax.jit, static_argnames="stride")
def convolve(
    kernel: Float[Array, "rows columns in_channels out_channels"],
    bias: Float[Array, "out_channels"],
    images: Float[Array, "batch height width in_channels"],
    stride: int = 1,
) -> Float[Array, "batch rows_out columns_out out_channels"]:
    """The zero-padded convolution, the taps of K running from -⌊(K-1)/2⌋ to ⌊K/2⌋.

    >>> convolve(jnp.ones((3, 3, 1, 1)), jnp.ones(1), jnp.ones((1, 4, 4, 1)), 2).ravel().tolist()
    [5.0, 7.0, 7.0, 10.0]
    """
    dtype = jnp.result_type(images, kernel)
    padding = [((size - 1) // 2, size // 2) for size in kernel.shape[:2]]
    found = lax.conv_general_dilated(
        images.astype(dtype),
        kernel.astype(dtype),
        (stride, stride),
        padding,
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
        precision=HIGHEST,
    )
    return found + bias


@partial(jax.jit, static_argnames="backend")
def attend(
    layer: AttentionLayer | TwoLayers,
    images: Float[Array, "batch height width in_channels"],
    backend: str = "auto",
) -> Float[Array, "batch rows_out columns_out out_channels"]:
    """`apply_attention`, compiled once for all layers of the same sizes."""
    if isinstance(layer, TwoLayers):
        return layer(images, backend=backend)
    return apply_attention(layer, images, backend=backend)


@jax.jit
def multiply(
    kernel: Float[Array, "features out_features"],
    bias: Float[Array, "out_features"],
    features: Float[Array, "batch features"],
) -> Float[Array, "batch out_features"]:
    """X W + b."""
    return jnp.matmul(features, kernel, precision=HIGHEST) + bias


def mixing_steps(network: Network) -> tuple[Convolution | Attention, ...]:
    """The steps that mix pixels, in the order in which they are applied; shortcuts last.

    >>> network = (Residual((Convolution(jnp.ones((1, 1, 1, 1)), jnp.zeros(1), name="a"),)),)
    >>> [step.name for step in mixing_steps(network)]
    ['a']
    """
    found: list[Convolution | Attention] = []
    for step in network:
        if isinstance(step, Convolution | Attention):
            found.append(step)
        elif isinstance(step, Residual):
            found += [*mixing_steps(step.branch), *mixing_steps(step.shortcut)]
    return tuple(found)
