"""The gradients of an attention network, group by group: what can learn at this moment.

The loss is that of the training on some of its images as they are, nothing drawn.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import Array
from jaxtyping import Float, Int

from convattn_lab.training.state import named_arrays
from convattn_lab.training.step import cross_entropy

GROUPS = {
    "W_Q": ("query", "query_bias"),
    "W_K": ("key", "key_bias"),
    "bias table": ("position_bias",),
    "W_V": ("value", "value_bias"),
    "W_O": ("output", "bias"),
}
REST = "rest"


@dataclass(frozen=True)
class GroupGradient:
    """The gradient of a group of parameters.

    Attributes:
        norm: Euclidean, over all layers.
        parameters: How many numbers the group has.
        zeros: Of how many of them the derivative is exactly zero.
    """

    norm: float
    parameters: int
    zeros: int


def group_of(name: str) -> str:
    """The group of a parameter by its name.

    >>> group_of("layers.0.mixing.position_bias"), group_of("layers.0.inner.bias")
    ('bias table', 'rest')
    """
    words = name.split(".")
    own = words[words.index("mixing") + 1] if "mixing" in words else ""
    return next((group for group, names in GROUPS.items() if own in names), REST)


def gradient_norms(
    model: nnx.Module,
    images: Float[Array, "batch height width channels"],
    labels: Int[Array, " batch"],
    label_smoothing: float = 0.0,
) -> dict[str, GroupGradient]:
    """The gradients of the mean loss over some images, for each group.

    >>> from convattn.nnx.vision_transformer.settings import VisionTransformerSettings
    >>> from convattn.nnx.vision_transformer.model import VisionTransformer
    >>> settings = VisionTransformerSettings(depth=1, width=12, inner=6, patch_size=2, heads=2)
    >>> model = VisionTransformer(settings, classes=2, image_size=(4, 4), rngs=nnx.Rngs(0))
    >>> found = gradient_norms(model, jnp.ones((1, 4, 4, 3)), jnp.array([1]))
    >>> sorted(found), found["bias table"].parameters
    (['W_K', 'W_O', 'W_Q', 'W_V', 'bias table', 'rest'], 18)
    """
    gradient = _loss_gradient(model, images, labels, label_smoothing)
    groups: dict[str, list[np.ndarray]] = {name: [] for name in (*GROUPS, REST)}
    for name, array in named_arrays(gradient).items():
        groups[group_of(name)].append(array.astype(np.float64).ravel())
    norms = {}
    for name, arrays in groups.items():
        numbers = np.concatenate(arrays) if arrays else np.zeros(0)
        norm = float(np.linalg.norm(numbers))
        norms[name] = GroupGradient(norm, numbers.size, int((numbers == 0).sum()))
    return norms


@nnx.jit
@partial(nnx.grad, argnums=nnx.DiffState(0, nnx.Param))
def _loss_gradient(model: Any, images: Array, labels: Array, label_smoothing: float) -> Array:
    """The gradient of the mean loss in all parameters."""
    return jnp.mean(cross_entropy(model(images), labels, label_smoothing))
