"""A training step with all that DeiT does to images."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from lab.training.tiny import Dense, parts, settings, training_images

from convattn_lab.data.augmentation.settings import Augmentation
from convattn_lab.data.batches import example_keys
from convattn_lab.training.step import PICTURES, make_step, order_of_epoch, root_key

pytestmark = pytest.mark.slow
DEIT = Augmentation(1, rand_augment=9.0, mixup=0.8, cutmix=1.0, erasing=0.25)


def test_a_step_learns_from_mixed_pictures() -> None:
    """The loss is that of the batch as it is loaded, and the parameters move."""
    images = training_images(augmentation=DEIT)
    given = settings(label_smoothing=0.1)
    model = Dense(dropout=0.0)
    recipe, _, state, data, steps = parts(model, given, images)
    state = replace(state, step=jnp.asarray(5, jnp.int32))
    order = order_of_epoch(state, 70, steps)
    after, loss = jax.jit(make_step(recipe, steps))(state, data, order)

    indices = order[16:32]
    keys = example_keys(root_key(state, PICTURES), 1, indices)
    augmented, targets = jax.jit(lambda keys: images.load(data, indices, keys, jnp.float32))(keys)
    assert targets.shape == (16, 3)
    assert ((targets > 0) & (targets < 1)).any()
    logits = np.asarray(model(augmented), np.float64)
    logarithms = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))

    def mean_loss(targets):
        smoothed = 0.9 * np.asarray(targets, np.float64) + 0.1 / 3
        return -(smoothed * logarithms).sum(axis=1).mean()

    # Some 150 roundings of numbers of the size of the logits and of their logarithms.
    size = float(np.abs(logits).max() + np.abs(logarithms).max())
    bound = 150 * 2.0**-24 * size
    assert abs(float(loss) - mean_loss(targets)) <= bound
    assert abs(float(loss) - mean_loss(targets[::-1])) > bound  # planted: the other's labels
    moved = jax.tree.map(
        lambda new, old: bool((new != old).any()), after.parameters, state.parameters
    )
    assert any(jax.tree.leaves(moved))
