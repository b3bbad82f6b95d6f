"""One step: a batch from the examples on the device, its loss, the gradient, the update.

Everything drawn in it depends on the run's key and on (epoch, index of the example) or on the step
alone, so that a run that was interrupted goes on as if it had not been.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax import Array, lax
from jax.sharding import Sharding
from jax.typing import DTypeLike

from convattn_lab.data.batches import epoch_order, example_keys
from convattn_lab.training.examples import TrainingExamples
from convattn_lab.training.settings import TrainingSettings
from convattn_lab.training.state import GENERATOR, TrainState

ORDER, PICTURES, DROPOUT = range(3)  # what the run's key is folded with


@dataclass(frozen=True)
class Recipe:
    """What a step needs besides the state and the data on the device.

    Attributes:
        structure: The model's, from `nnx.split`.
        optimizer: As `make_optimizer` returns it.
        settings: Batch size, label smoothing, compute dtype.
        examples: What a batch is loaded from, and how.
        batch: How the batch is spread over devices.
    """

    structure: nnx.GraphDef
    optimizer: optax.GradientTransformation
    settings: TrainingSettings
    examples: TrainingExamples
    batch: Sharding


def root_key(state: TrainState, purpose: int) -> Array:
    """The key for one purpose."""
    return jax.random.fold_in(jax.random.wrap_key_data(state.key, impl=GENERATOR), purpose)


def order_of_epoch(state: TrainState, count: int, steps: int) -> Array:
    """The order of the pictures in the epoch that the state's next step belongs to.

    Args:
        count: The number of pictures.
        steps: Of an epoch.
    """
    return epoch_order(root_key(state, ORDER), state.step // steps, count)


def cross_entropy(logits: Array, targets: Array, smoothing: float) -> Array:
    """-Σ_c t_c log softmax(z)_c at each position, with t = (1 - s)·target + s/classes.

    Computed in at least float32.

    Args:
        logits: `[…, classes]`.
        targets: Class numbers `[…]`, or distributions `[…, classes]`.

    >>> round(float(cross_entropy(jnp.zeros((1, 4)), jnp.array([2]), 0.0)[0]), 4)
    1.3863
    >>> round(float(cross_entropy(jnp.zeros((1, 2)), jnp.array([[0.5, 0.5]]), 0.0)[0]), 4)
    0.6931
    """
    wide = jnp.promote_types(logits.dtype, jnp.float32)
    named = distributions(targets, logits.shape[-1], wide)
    return optax.softmax_cross_entropy(logits.astype(wide), optax.smooth_labels(named, smoothing))


def distributions(targets: Array, classes: int, dtype: DTypeLike) -> Array:
    """Targets as distributions: class numbers become one-hot, distributions stay."""
    if jnp.issubdtype(targets.dtype, jnp.floating):
        return targets.astype(dtype)
    return jax.nn.one_hot(targets, classes, dtype=dtype)


def correct_positions(logits: Array, targets: Array) -> Array:
    """How many positions of each example have the largest logit at their most likely class.

    >>> logits = jnp.array([[[2.0, 1.0], [0.0, 1.0]]])
    >>> correct_positions(logits, jnp.array([[0, 0]])).tolist()
    [1]
    """
    distributed = jnp.issubdtype(targets.dtype, jnp.floating)
    named = jnp.argmax(targets, axis=-1) if distributed else targets
    right = jnp.argmax(logits, axis=-1) == named
    return right.reshape(len(right), -1).sum(axis=1)


def mean_over_positions(values: Array) -> Array:
    """One number for each example."""
    return values.reshape(len(values), -1).mean(axis=1)


def make_step(
    recipe: Recipe, steps: int
) -> Callable[[TrainState, Any, Array], tuple[TrainState, Array]]:
    """The function (state, data, order of the epoch) → (state, loss of the batch).

    Args:
        steps: Of an epoch; its first step begins new sums.
    """
    settings, size = recipe.settings, recipe.settings.batch_size
    dtype = jnp.dtype(settings.compute_dtype)

    def loss_of(
        parameters: nnx.State, statistics: nnx.State, inputs: Array, targets: Array, key: Array
    ) -> tuple[Array, tuple[Any, Array]]:
        model = nnx.merge(recipe.structure, parameters, statistics, copy=True)
        logits = model(inputs, training=True, dropout_key=key)
        losses = cross_entropy(logits, targets, settings.label_smoothing)
        correct = jnp.sum(correct_positions(logits, targets))
        return jnp.mean(losses), (nnx.state(model, nnx.Not(nnx.Param)), correct)

    def step(state: TrainState, data: Any, order: Array) -> tuple[TrainState, Array]:
        index, epoch = state.step % steps, state.step // steps
        indices = lax.dynamic_slice(order, (index * size,), (size,))
        indices = lax.with_sharding_constraint(indices, recipe.batch)
        keys = example_keys(root_key(state, PICTURES), epoch, indices)
        inputs, targets = recipe.examples.load(data, indices, keys, dtype)
        inputs = lax.with_sharding_constraint(inputs, recipe.batch)
        key = jax.random.fold_in(root_key(state, DROPOUT), state.step)
        (loss, (statistics, correct)), gradient = jax.value_and_grad(loss_of, has_aux=True)(
            state.parameters, state.statistics, inputs, targets, key
        )
        updates, optimizer = recipe.optimizer.update(gradient, state.optimizer, state.parameters)
        begins = index == 0
        return replace(
            state,
            parameters=optax.apply_updates(state.parameters, updates),
            statistics=statistics,
            optimizer=optimizer,
            step=state.step + 1,
            loss_sum=jnp.where(begins, 0, state.loss_sum) + loss.astype(jnp.float32),
            correct=jnp.where(begins, 0, state.correct) + correct.astype(jnp.int32),
        ), loss

    return step
