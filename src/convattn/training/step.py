"""One step: a batch from the images on the device, its loss, the gradient, the update.

Everything drawn in it depends on the run's key and on (epoch, index of the picture) or on the step
alone, so that a run that was interrupted goes on as if it had not been.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jax import Array, lax
from jax.sharding import Sharding

from convattn.data.batches import Augmentation, DeviceImages, epoch_order, example_keys, load_batch
from convattn.training.settings import TrainingSettings
from convattn.training.state import TrainState

ORDER, PICTURES, DROPOUT = range(3)  # what the run's key is folded with


@dataclass(frozen=True)
class Recipe:
    """What a step needs besides the state and the images.

    **Fields:**

    - `structure`: the model's, from `nnx.split`.
    - `optimizer`: as `make_optimizer` returns it.
    - `settings`: batch size, label smoothing, compute dtype.
    - `mean`, `std`: of each channel, in [0, 1].
    - `augmentation`: of the training pictures, or None.
    - `batch`: how the batch is spread over devices.
    """

    structure: nnx.GraphDef
    optimizer: optax.GradientTransformation
    settings: TrainingSettings
    mean: np.ndarray
    std: np.ndarray
    augmentation: Augmentation | None
    batch: Sharding


def root_key(state: TrainState, purpose: int) -> Array:
    """The key for one purpose."""
    return jax.random.fold_in(jax.random.wrap_key_data(state.key), purpose)


def order_of_epoch(state: TrainState, count: int, steps: int) -> Array:
    """The order of the pictures in the epoch that the state's next step belongs to.

    **Arguments:**

    - `count`: the number of pictures.
    - `steps`: of an epoch.
    """
    return epoch_order(root_key(state, ORDER), state.step // steps, count)


def cross_entropy(logits: Array, labels: Array, smoothing: float) -> Array:
    """-Σ_c t_c log softmax(z)_c of each picture, with t = (1 - s)·onehot + s/classes.

    Computed in at least float32.

    >>> round(float(cross_entropy(jnp.zeros((1, 4)), jnp.array([2]), 0.0)[0]), 4)
    1.3863
    """
    wide = jnp.promote_types(logits.dtype, jnp.float32)
    named = jax.nn.one_hot(labels, logits.shape[-1], dtype=wide)
    targets = optax.smooth_labels(named, smoothing)
    return optax.softmax_cross_entropy(logits.astype(wide), targets)


def make_step(
    recipe: Recipe, steps: int
) -> Callable[[TrainState, DeviceImages, Array], tuple[TrainState, Array]]:
    """The function (state, images, order of the epoch) → (state, loss of the batch).

    **Arguments:**

    - `steps`: of an epoch; its first step begins new sums.
    """
    settings, size = recipe.settings, recipe.settings.batch_size
    dtype = jnp.dtype(settings.compute_dtype)

    def loss_of(
        parameters: nnx.State, statistics: nnx.State, images: Array, labels: Array, key: Array
    ) -> tuple[Array, tuple[Any, Array]]:
        model = nnx.merge(recipe.structure, parameters, statistics, copy=True)
        logits = model(images, training=True, dropout_key=key)
        losses = cross_entropy(logits, labels, settings.label_smoothing)
        correct = jnp.sum(jnp.argmax(logits, axis=-1) == labels)
        return jnp.mean(losses), (nnx.state(model, nnx.Not(nnx.Param)), correct)

    def step(state: TrainState, data: DeviceImages, order: Array) -> tuple[TrainState, Array]:
        place, epoch = state.step % steps, state.step // steps
        indices = lax.dynamic_slice(order, (place * size,), (size,))
        indices = lax.with_sharding_constraint(indices, recipe.batch)
        keys = example_keys(root_key(state, PICTURES), epoch, indices)
        images, labels = load_batch(
            data, indices, keys, recipe.mean, recipe.std, recipe.augmentation, dtype
        )
        images = lax.with_sharding_constraint(images, recipe.batch)
        key = jax.random.fold_in(root_key(state, DROPOUT), state.step)
        (loss, (statistics, correct)), gradient = jax.value_and_grad(loss_of, has_aux=True)(
            state.parameters, state.statistics, images, labels, key
        )
        updates, optimizer = recipe.optimizer.update(gradient, state.optimizer, state.parameters)
        begins = place == 0
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
