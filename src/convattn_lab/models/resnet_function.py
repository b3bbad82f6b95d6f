"""A trained `ResNet` outside training as a function of bytes, its convolutions named.

`random_resnet` makes one with random parameters and statistics, without compiling anything.
"""

from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import Array
from jax.typing import DTypeLike
from jaxtyping import Float

from convattn_lab.models.resnet import NormalizedConvolution, ResNet
from convattn_lab.models.settings import ResNetSettings

SIDE = 32  # of which no parameter knows


class Named(nnx.Module):
    """A module whose equations have a name."""

    def __init__(self, name: str, module: Any) -> None:
        self.name, self.module = name, module

    def __call__(self, images: Array) -> Array:
        """The module."""
        with jax.named_scope(self.name):
            return self.module(images)


def image_function(
    model: ResNet,
    mean: Float[np.ndarray, " channels"],
    std: Float[np.ndarray, " channels"],
    dtype: DTypeLike = np.float32,
) -> Callable[[Array], Array]:
    """From images of bytes `[batch, height, width, channels]` to logits.

    Its convolutions are named as the model's parameters are: `stem`, `blocks.0.first`,
    `blocks.2.shortcut`.

    Args:
        mean, std: Of each channel of x/255, by which the images x are normalised.
        dtype: Of all numbers: float32, or float64 where JAX has its 64-bit types enabled.

    Raises:
        ValueError: For another model than a `ResNet`.

    >>> import convattn as ca
    >>> model = random_resnet(np.random.default_rng(0), ResNetSettings((2,), (1,)), 3)
    >>> function = image_function(model, np.full(3, 0.5), np.ones(3))
    >>> list(ca.attention_of(function, jnp.ones((1, 8, 8, 3), jnp.uint8)).layers)
    ['stem', 'blocks.0.first', 'blocks.0.second']
    """
    model = _in_dtype(model, dtype)
    layers: Iterator[tuple[str, Any]] = normalized_convolutions(model)
    for name, layer in layers:
        layer.convolution = Named(name, layer.convolution)
    shift = (255 * np.asarray(mean, np.float64)).astype(dtype)
    scale = (1 / (255 * np.asarray(std, np.float64))).astype(dtype)
    graph, state = nnx.split(model)

    def logits(images: Array) -> Array:
        return nnx.merge(graph, state)((images.astype(dtype) - shift) * scale)

    return logits


def folded(model: ResNet) -> ResNet:
    """The same function with each batch norm folded into its kernel; the norms add the bias alone.

    >>> model = random_resnet(np.random.default_rng(0), ResNetSettings((2,), (1,)), 3)
    >>> images = jnp.ones((1, 8, 8, 3))
    >>> bool(jnp.allclose(folded(model)(images), model(images), rtol=1e-5, atol=1e-5))
    True
    """
    model = nnx.clone(model)
    for _, layer in normalized_convolutions(model):
        norm: Any = layer.norm
        parameters = (layer.convolution.kernel, norm.mean, norm.var, norm.scale, norm.bias)
        kernel, mean, variance, scale, shift = (
            np.asarray(parameter[...], np.float64) for parameter in parameters
        )
        factor = scale / np.sqrt(variance + norm.epsilon)
        arrays = (kernel * factor, 0 * mean, 0 * variance + 1 - norm.epsilon, 0 * scale + 1)
        for parameter, array in zip(parameters, (*arrays, shift - mean * factor), strict=True):
            parameter[...] = jnp.asarray(array, parameter.dtype)
    return model


def _require_resnet(model: Any) -> None:
    """Refuse another model than a `ResNet`."""
    if not isinstance(model, ResNet):
        raise ValueError(
            f"the model is {type(model).__name__}, but expected a ResNet: only convolutions are "
            "turned into attention"
        )


def _in_dtype(model: ResNet, dtype: DTypeLike) -> ResNet:
    """The same parameters and statistics, held in a dtype in which the model computes.

    Args:
        dtype: float32, or float64 where JAX has its 64-bit types enabled.

    >>> settings = ResNetSettings(channels=(4,), blocks=(1,))
    >>> rngs = nnx.Rngs(0)
    >>> model = ResNet(settings, classes=10, image_size=(8, 8), rngs=rngs, dtype=jnp.bfloat16)
    >>> _in_dtype(model, "float32").dtype
    dtype('float32')
    """
    _require_resnet(model)
    classifier: Any = model.classifier

    def build() -> ResNet:
        return ResNet(
            model.settings,
            classes=classifier.kernel.shape[1],
            image_size=(SIDE, SIDE),
            rngs=nnx.Rngs(0),
            dtype=dtype,
            channels=model.channels,
        )

    structure = nnx.split(nnx.eval_shape(build))[0]
    state = jax.tree.map(lambda leaf: jnp.asarray(np.asarray(leaf).astype(dtype)), nnx.state(model))
    return nnx.merge(structure, state)


def normalized_convolutions(model: ResNet) -> Iterator[tuple[str, NormalizedConvolution]]:
    """The layers of a model that mix pixels, with their names."""
    yield "stem", model.stem
    for number, block in enumerate(model.blocks):
        for name in ("first", "second", "shortcut"):
            layer = getattr(block, name)
            if layer is not None:
                yield f"blocks.{number}.{name}", layer


RANGES = {"mean": (-1.0, 1.0), "var": (0.2, 2.0), "scale": (-2.0, 2.0), "bias": (-1.0, 1.0)}


def random_resnet(rng: np.random.Generator, settings: ResNetSettings, classes: int) -> ResNet:
    """Kernels of variance 2/n, n what an entry sums; statistics, scales and shifts of all sizes.

    >>> settings = ResNetSettings(channels=(2,), blocks=(1,))
    >>> model = random_resnet(np.random.default_rng(0), settings, 3)
    >>> bool(model.stem.norm.var[...].min() >= 0.2), model.classifier.kernel.shape
    (True, (2, 3))
    """

    def build() -> ResNet:
        return ResNet(settings, classes=classes, image_size=(SIDE, SIDE), rngs=nnx.Rngs(0))

    def draw(path: tuple[Any, ...], leaf: Any) -> jax.Array:
        names = jax.tree_util.keystr(path, simple=True, separator=".").split(".")
        matches = [name for name in names if name in RANGES]
        if matches:
            values = rng.uniform(*RANGES[matches[-1]], leaf.shape)
        else:
            values = rng.normal(0, np.sqrt(2 / np.prod(leaf.shape[:-1])), leaf.shape)
        return jnp.asarray(values.astype(leaf.dtype))

    structure, state = nnx.split(nnx.eval_shape(build))
    return nnx.merge(structure, jax.tree_util.tree_map_with_path(draw, state))
