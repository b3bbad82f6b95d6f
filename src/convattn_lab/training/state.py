"""`TrainState`: all that a run needs to go on."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jax import Array

GENERATOR = "threefry2x32"  # others draw, for a batch of keys, what depends on the batch


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class TrainState:
    """All that a run needs to go on; a pytree.

    Attributes:
        parameters: What is trained.
        statistics: The model's other variables, such as those of batch normalisation.
        optimizer: The optimiser's.
        step: How many steps were taken. With the number of images and the batch size it says which
            pictures come next.
        key: The words of the random key from which everything is drawn.
        loss_sum, correct: Of the epoch so far: the sum of the steps' losses, and how many of its
            pictures were classified correctly.
    """

    parameters: nnx.State
    statistics: nnx.State
    optimizer: Any
    step: Array
    key: Array
    loss_sum: Array
    correct: Array


def initial_state(
    model: nnx.Module, optimizer: optax.GradientTransformation, seed: int
) -> tuple[nnx.GraphDef, TrainState]:
    """The structure of a model, and the state before the first step.

    Args:
        seed: Of the order of the pictures, of their crops and flips, and of dropout.
    """
    structure, parameters, statistics = nnx.split(model, nnx.Param, ...)  # type: ignore[misc]
    return structure, TrainState(
        parameters,
        statistics,
        optimizer.init(parameters),
        jnp.zeros((), jnp.int32),
        jax.random.key_data(jax.random.key(seed, impl=GENERATOR)),
        jnp.zeros((), jnp.float32),
        jnp.zeros((), jnp.int32),
    )


def named_leaves(tree: Any) -> list[tuple[str, Any]]:
    """The leaves of a tree with their paths, as names.

    Raises:
        ValueError: If two paths read the same.

    >>> [name for name, _ in named_leaves({"a": 1, "b": (2,)})]
    ['a', 'b.0']
    """
    named = [
        (jax.tree_util.keystr(path, simple=True, separator="."), leaf)
        for path, leaf in jax.tree_util.tree_leaves_with_path(tree)
    ]
    names = [name for name, _ in named]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"several arrays are named {twice}; rename the parameters")
    return named


def named_arrays(tree: Any) -> dict[str, np.ndarray]:
    """The arrays of a tree under their names, copied to the host.

    >>> named_arrays({"a": jnp.zeros(2)})
    {'a': array([0., 0.], dtype=float32)}
    """
    return {name: np.array(jax.device_get(leaf)) for name, leaf in named_leaves(tree)}


def with_named_arrays(tree: Any, arrays: dict[str, np.ndarray]) -> Any:
    """A tree of the same structure with these arrays.

    Raises:
        ValueError: Where a name, a shape or a dtype differs.
    """
    named = named_leaves(tree)
    if {name for name, _ in named} != set(arrays):
        missing = sorted({name for name, _ in named} - set(arrays))
        extra = sorted(set(arrays) - {name for name, _ in named})
        raise ValueError(
            f"the arrays do not fit the model: missing {missing[:3]}, not expected {extra[:3]}; "
            "they were made with other settings"
        )
    for name, leaf in named:
        array = arrays[name]
        if array.shape != leaf.shape or array.dtype != leaf.dtype:
            raise ValueError(
                f"{name} is {array.dtype}{list(array.shape)}, but the model has "
                f"{leaf.dtype}{list(leaf.shape)}; it was made with other settings"
            )
    leaves = [jnp.asarray(arrays[name]) for name, _ in named]
    return jax.tree.unflatten(jax.tree.structure(tree), leaves)
