"""A trained ResNet beside its attention network: within the bound, and with the same classes."""

from collections.abc import Iterator
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Float, Integer, Num

from convattn.lab.models.resnet import ResNet
from convattn.lab.models.resnet_network import (
    ModelRun,
    fold,
    in_dtype,
    normalized_convolutions,
    require_resnet,
    resnet_to_network,
)
from convattn.networks.conversion import to_attention
from convattn.networks.deviation import Deviation, deviation
from convattn.networks.runs import AttentionRun, Runner, run_network
from convattn.networks.steps import Attention, Network, Scaling, mixing_steps

BATCH = 10  # of the comparison by classes, and of the bound: one compilation serves both


@dataclass(frozen=True)
class ConvertedResNet:
    """A model, what it was folded to, and its network of attention layers.

    Attributes:
        folded, attention: Networks, both with the scaling of the images as their first step.
        model_run, attention_run: How they are run side by side.
    """

    folded: Network
    attention: Network
    model_run: ModelRun
    attention_run: AttentionRun


@dataclass(frozen=True)
class SameClasses:
    """The classes that a model and its attention network give to labelled images.

    Attributes:
        images: How many.
        correct, attention_correct: How many each classifies correctly.
        same: How many get the same class.
        difference: The largest of two logits.
        margin: The smallest lead of the model's first class over its second.
    """

    images: int
    correct: int
    attention_correct: int
    same: int
    difference: float
    margin: float

    @property
    def passed(self) -> bool:
        """Whether no image changes class."""
        return self.same == self.images


def convert_resnet(
    model: ResNet,
    mean: Float[np.ndarray, "channels"],
    std: Float[np.ndarray, "channels"],
    *,
    leak: float = 0.5,
    dtype: DTypeLike = np.float32,
) -> ConvertedResNet:
    """Fold a model and turn it into attention, stored and run in a dtype.

    The images x are normalised by the mean and the standard deviation of each channel of x/255.
    """
    require_resnet(model)
    model = model if model.dtype == dtype else in_dtype(model, dtype)
    shift = (255 * np.asarray(mean, np.float64)).astype(dtype)
    scale = (1 / (255 * np.asarray(std, np.float64))).astype(dtype)
    folded = (Scaling(jnp.asarray(shift), jnp.asarray(scale)), *resnet_to_network(model, dtype))
    attention = to_attention(folded, leak=leak)
    layers = dict(normalized_convolutions(model))
    return ConvertedResNet(
        folded,
        attention,
        ModelRun(layers, {name: fold(layer, dtype) for name, layer in layers.items()}),
        AttentionRun(attention_layers(attention)),
    )


def attention_layers(network: Network) -> dict:
    """The attention layers of a network by their names."""
    steps = mixing_steps(network)
    return {step.name: step.layer for step in steps if isinstance(step, Attention)}


def compare_logits(
    converted: ConvertedResNet, images: Num[np.ndarray, "batch height width channels"]
) -> Deviation:
    """`deviation` of the trained model and the attention network on a few images of bytes, in the
    dtype of the conversion."""
    first = next(step for step in converted.folded if isinstance(step, Scaling))
    typed = jnp.asarray(np.asarray(images), first.shift.dtype)
    return deviation(converted.folded, converted.model_run, converted.attention_run, typed)


def compare_in_float64(
    model: ResNet,
    mean: Float[np.ndarray, "channels"],
    std: Float[np.ndarray, "channels"],
    images: Num[np.ndarray, "batch height width channels"],
    *,
    leak: float = 0.5,
) -> Deviation:
    """The same parameters folded, converted and compared in float64, where rounding hides nothing.

    JAX's 64-bit types are enabled meanwhile, in this thread.
    """
    with jax.enable_x64(True):
        converted = convert_resnet(model, mean, std, leak=leak, dtype=np.float64)
        return compare_logits(converted, images)


def same_classes(
    of_model: Float[np.ndarray, "count classes"],
    of_attention: Float[np.ndarray, "count classes"],
    labels: Integer[np.ndarray, "count"],
) -> SameClasses:
    """What the logits of both say.

    >>> logits = np.array([[3.0, 1.0], [0.0, 0.5]])
    >>> found = same_classes(logits, logits + [0.0, 1.0], np.array([0, 0]))
    >>> found.correct, found.same, found.difference, found.margin
    (1, 2, 1.0, 0.5)
    """
    first, other = of_model.argmax(axis=1), of_attention.argmax(axis=1)
    two = np.sort(of_model.astype(np.float64), axis=1)[:, -2:]
    return SameClasses(
        len(labels),
        int((first == labels).sum()),
        int((other == labels).sum()),
        int((first == other).sum()),
        float(np.abs(of_model.astype(np.float64) - of_attention).max()),
        float((two[:, 1] - two[:, 0]).min()),
    )


def logits_of(
    network: Network, run: Runner, images: Num[np.ndarray, "count height width channels"]
) -> Float[np.ndarray, "count classes"]:
    """The logits of all images, `BATCH` of them at a time; the last batch is filled with zeros."""
    found = [np.asarray(run_network(network, run, jnp.asarray(part))) for part in batches(images)]
    return np.concatenate(found)[: len(images)]


def batches(
    images: Num[np.ndarray, "count height width channels"],
) -> Iterator[Float[np.ndarray, "batch height width channels"]]:
    """The images in float32, `BATCH` at a time.

    >>> [part.shape for part in batches(np.ones((13, 4, 4, 1), np.uint8))]
    [(10, 4, 4, 1), (10, 4, 4, 1)]
    """
    for start in range(0, len(images), BATCH):
        part = np.asarray(images[start : start + BATCH], np.float32)
        yield np.pad(part, [(0, BATCH - len(part)), (0, 0), (0, 0), (0, 0)])
