"""One step: its loss, its batch, and what its random numbers depend on."""

from dataclasses import replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal, assert_within, gamma
from flax import nnx
from lab.training.tiny import CLASSES, SIDE, Dense, set_up, settings, training_images

from convattn_lab.data.augmentation.settings import Augmentation
from convattn_lab.data.batches import example_keys
from convattn_lab.training.state import named_leaves
from convattn_lab.training.step import PICTURES, cross_entropy, make_step, order_of_epoch, root_key


def cross_entropy_of(logits, labels, smoothing):
    """-Σ_c t_c log softmax(z)_c in NumPy, float64."""
    logits = np.asarray(logits, np.float64)
    targets = np.full(logits.shape, smoothing / logits.shape[1])
    targets[np.arange(len(labels)), labels] += 1 - smoothing
    shifted = logits - logits.max(axis=1, keepdims=True)
    logarithms = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return -(targets * logarithms).sum(axis=1)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
@pytest.mark.parametrize("smoothing", [0.0, 0.25])
def test_cross_entropy(smoothing, dtype):
    """Computed in float32 or wider: five classes, some 20 roundings of numbers up to 2·60."""
    rng = np.random.default_rng(0)
    logits, labels = jnp.asarray(rng.uniform(-60, 60, (7, 5)), dtype), rng.integers(0, 5, 7)
    losses = cross_entropy(logits, jnp.asarray(labels), smoothing)
    wide = jnp.promote_types(dtype, jnp.float32)
    assert losses.dtype == wide
    bound = 120 * gamma(20, wide)
    assert_within(losses, cross_entropy_of(logits.astype("float64"), labels, smoothing), bound)
    with pytest.raises(AssertionError, match="too far"):  # planted
        assert_within(losses, cross_entropy_of(logits, labels, smoothing + 0.01), bound)


class Spy(nnx.Module):
    """Its gradient is the batch that it was called with, and its dropout's draw."""

    def __init__(self, size=16):
        self.batch = nnx.Param(jnp.zeros((size, SIDE, SIDE, 3)))
        self.draw = nnx.Param(jnp.zeros(()))

    def __call__(self, images, *, training=False, dropout_key=None):
        draw = jax.random.uniform(dropout_key)
        score = jnp.sum(self.batch * images, axis=(1, 2, 3)) + self.draw * draw
        return jnp.stack([score, -score, -score], axis=1)


# SGD at rate 1 without momentum: the change of `batch` is minus the gradient, a multiple of each
# image by a number that only its label decides, as all scores are zero at first.
PLAIN = {"learning_rate": 1.0, "momentum": 0.0, "weight_decay": 0.0, "warmup": 0.0, "epochs": 40}


@cache
def spying(batch_size):
    """The compiled step and order, the state, the images, and the steps of an epoch."""
    recipe, _, state, data, steps = set_up(
        Spy(batch_size), settings(**PLAIN, batch_size=batch_size)
    )
    order = jax.jit(lambda state: order_of_epoch(state, 70, steps))
    return jax.jit(make_step(recipe, steps)), order, state, data, steps


def batch_of(step, *, seed=0, batch_size=16):
    """Indices, images and the draw for dropout of a step."""
    compiled, order_of, state, data, steps = spying(batch_size)
    key = jax.random.key_data(jax.random.key(seed))
    state = replace(state, step=jnp.asarray(step, jnp.int32), key=key)
    order = order_of(state)
    after, loss = compiled(state, data, order)
    assert float(loss) == pytest.approx(np.log(CLASSES), abs=float(gamma(20, jnp.float32)))
    start = step % steps * batch_size
    parameters = after.parameters
    return order[start : start + batch_size], parameters["batch"][...], parameters["draw"][...]


@pytest.mark.slow
def test_seed_epoch_and_index_decide_a_steps_images():
    """The same picture of one epoch is the same in whatever batch it is, and else another."""
    indices, images, draw = batch_of(5)
    assert_equal(batch_of(5)[1], images)
    assert len(set(indices.tolist())) == 16
    halves = [batch_of(step, batch_size=8) for step in (9, 10)]  # 8 steps an epoch, not 4
    assert halves[0][0].shape == (8,)
    pictures = dict(zip(indices.tolist(), np.asarray(images), strict=True))
    shared = 0
    for selected, half, _ in halves:
        for index, picture in zip(selected.tolist(), np.asarray(half), strict=True):
            if index in pictures:  # the mean over 8, not 16: twice the gradient
                assert_equal(picture, 2 * pictures[index])
                shared += 1
    assert shared
    for other in (batch_of(9), batch_of(5, seed=1)):  # another epoch, another seed
        assert not np.array_equal(other[0], indices)
        assert float(other[2]) != float(draw)
        assert any(  # cropped and mirrored otherwise
            not np.array_equal(picture, pictures[index])
            for index, picture in zip(other[0].tolist(), np.asarray(other[1]), strict=True)
            if index in pictures
        )


@pytest.mark.slow
def test_dropout_differs_at_every_step():
    assert len({float(batch_of(step)[2]) for step in range(3)}) == 3


def test_an_epoch_takes_every_picture_at_most_once():
    _, order_of, state, _, _ = spying(16)
    orders = [
        np.asarray(order_of(replace(state, step=jnp.asarray(step, jnp.int32))))
        for step in (0, 3, 4)
    ]
    for order in orders:
        assert sorted(order) == list(range(70))
    assert_equal(orders[0], orders[1])
    assert not np.array_equal(orders[0], orders[2])


@pytest.mark.slow
def test_bfloat16_computes_but_does_not_store():
    """Parameters, momentum and losses stay float32."""
    recipe, _, state, data, steps = set_up(Dense(), settings(compute_dtype="bfloat16"))
    after, loss = jax.jit(make_step(recipe, steps))(state, data, order_of_epoch(state, 70, steps))
    assert loss.dtype == jnp.float32
    assert np.isfinite(loss)
    for (name, before), (_, leaf) in zip(named_leaves(state), named_leaves(after), strict=True):
        assert leaf.dtype == before.dtype != jnp.bfloat16, name


@pytest.mark.slow
def test_a_step_learns_from_mixed_pictures():
    """With all that DeiT does: the loss is that of the batch as it is loaded."""
    deit = Augmentation(1, rand_augment=9.0, mixup=0.8, cutmix=1.0, erasing=0.25)
    images, model = training_images(augmentation=deit), Dense(dropout=0.0)
    recipe, _, state, data, steps = set_up(model, settings(label_smoothing=0.1), images)
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
    bound = 150 * 2.0**-24 * float(np.abs(logits).max() + np.abs(logarithms).max())
    assert abs(float(loss) - mean_loss(targets)) <= bound
    assert abs(float(loss) - mean_loss(targets[::-1])) > bound  # planted: the other's labels
    pairs = zip(named_leaves(after.parameters), named_leaves(state.parameters), strict=True)
    assert any((new != old).any() for (_, new), (_, old) in pairs)
