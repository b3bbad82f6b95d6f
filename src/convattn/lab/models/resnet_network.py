"""A trained `ResNet` as a network of convolutions, its batch normalisation folded in.

`random_resnet` makes one with random parameters and statistics, without compiling anything.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import Array
from jax.typing import DTypeLike

from convattn.lab.models.resnet import NormalizedConvolution, ResNet
from convattn.lab.models.settings import ResNetSettings
from convattn.networks.folding import FoldedConvolution, fold_batch_norm
from convattn.networks.local_errors import LocalError, of_model
from convattn.networks.runs import SOON, few
from convattn.networks.steps import (
    Convolution,
    Linear,
    Mean,
    Network,
    Relu,
    Residual,
    Step,
    Values,
)

SIDE = 32  # of which no parameter knows


def resnet_to_network(model: ResNet, dtype: DTypeLike = np.float32) -> Network:
    """The residual network that computes what the model computes outside training.

    Layers are named as the model's parameters are: `stem`, `blocks.0.first`, `blocks.2.shortcut`.

    Args:
        dtype: Of kernels and biases: float32, or float64 where JAX has its 64-bit types enabled.

    Raises:
        ValueError: For another model than a `ResNet`, and as `fold_batch_norm` does.

    >>> import jax.numpy as jnp
    >>> from flax import nnx
    >>> from convattn.networks.steps import apply_network, mixing_steps
    >>> settings = ResNetSettings(channels=(4, 6), blocks=(1, 1))
    >>> model = ResNet(settings, classes=10, image_size=(8, 8), rngs=nnx.Rngs(0))
    >>> network = resnet_to_network(model)
    >>> [step.name for step in mixing_steps(network)][-3:]
    ['blocks.1.first', 'blocks.1.second', 'blocks.1.shortcut']
    >>> apply_network(network, jnp.ones((2, 8, 8, 3), jnp.float32)).shape
    (2, 10)
    """
    require_resnet(model)

    def convolution(name: str, layer: NormalizedConvolution) -> Convolution:
        folded = fold(layer, dtype)
        stride = layer.convolution.strides
        return Convolution(
            jnp.asarray(folded.kernel),
            jnp.asarray(folded.bias),
            stride if isinstance(stride, int) else int(next(iter(stride or (1,)))),
            name,
        )

    layers = dict(normalized_convolutions(model))
    steps: list[Step] = [convolution("stem", layers["stem"]), Relu()]
    for number in range(len(model.blocks)):
        names = [f"blocks.{number}.{part}" for part in ("first", "second", "shortcut")]
        first, second = (convolution(name, layers[name]) for name in names[:2])
        shortcut = (convolution(names[2], layers[names[2]]),) if names[2] in layers else ()
        steps += [Residual((first, Relu(), second), shortcut), Relu()]
    classifier: Any = model.classifier
    steps += [
        Mean(),
        Linear(
            jnp.asarray(classifier.kernel[...], dtype), jnp.asarray(classifier.bias[...], dtype)
        ),
    ]
    return tuple(steps)


def require_resnet(model: Any) -> None:
    """Refuse another model than a `ResNet`.

    Raises:
        ValueError: As described above.
    """
    if not isinstance(model, ResNet):
        raise ValueError(
            f"the model is {type(model).__name__}, but expected a ResNet: only convolutions are "
            "turned into attention"
        )


def in_dtype(model: ResNet, dtype: DTypeLike) -> ResNet:
    """The same parameters and statistics, held in a dtype in which the model computes.

    Args:
        dtype: float32, or float64 where JAX has its 64-bit types enabled.

    >>> settings = ResNetSettings(channels=(4,), blocks=(1,))
    >>> rngs = nnx.Rngs(0)
    >>> model = ResNet(settings, classes=10, image_size=(8, 8), rngs=rngs, dtype=jnp.bfloat16)
    >>> in_dtype(model, "float32").dtype
    dtype('float32')
    """
    require_resnet(model)
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
        for part in ("first", "second", "shortcut"):
            layer = getattr(block, part)
            if layer is not None:
                yield f"blocks.{number}.{part}", layer


def fold(layer: NormalizedConvolution, dtype: DTypeLike = np.float32) -> FoldedConvolution:
    """Its kernel and bias with the normalisation by the running statistics in them."""
    norm: Any = layer.norm
    kernel, mean, variance, scale, shift = (
        np.asarray(part[...])
        for part in (layer.convolution.kernel, norm.mean, norm.var, norm.scale, norm.bias)
    )
    return fold_batch_norm(kernel, mean, variance, scale, shift, norm.epsilon, dtype)


@dataclass(frozen=True)
class ModelRun:
    """The layers of a trained model, outside training.

    Attributes:
        layers: By name.
        folded: What they were folded to.
    """

    layers: dict[str, NormalizedConvolution]
    folded: dict[str, FoldedConvolution]

    def apply(self, step: Convolution, images: Values) -> Array:
        """The layer of that name, normalised by its running statistics."""
        graph, state = nnx.split(self.layers[step.name])
        return (normalized_soon if few(images) else normalized)(graph, state, images)

    def error(self, step: Convolution, images: Values) -> LocalError:
        """How far that can be from the exact folded convolution."""
        return of_model(step, self.folded[step.name], images.dtype)


def _normalized(graph: Any, state: Any, images: Values) -> Array:
    return nnx.merge(graph, state)(images, False)


# A `NormalizedConvolution` outside training, compiled once for all of the same sizes.
normalized = jax.jit(_normalized, static_argnums=0)
normalized_soon = jax.jit(_normalized, static_argnums=0, compiler_options=SOON)


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
        found = [name for name in names if name in RANGES]
        if found:
            drawn = rng.uniform(*RANGES[found[-1]], leaf.shape)
        else:
            drawn = rng.normal(0, np.sqrt(2 / np.prod(leaf.shape[:-1])), leaf.shape)
        return jnp.asarray(drawn.astype(leaf.dtype))

    structure, state = nnx.split(nnx.eval_shape(build))
    return nnx.merge(structure, jax.tree_util.tree_map_with_path(draw, state))
