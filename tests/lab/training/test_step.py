"""One step: its loss, its batch, and what its random numbers depend on."""

from dataclasses import replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal, assert_within, gamma
from flax import nnx
from lab.training.tiny import CLASSES, SIDE, Dense, parts, settings, training_images

from convattn_lab.training.state import named_leaves
from convattn_lab.training.step import cross_entropy, make_step, order_of_epoch


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
    found = cross_entropy(logits, jnp.asarray(labels), smoothing)
    wide = jnp.promote_types(dtype, jnp.float32)
    assert found.dtype == wide
    bound = 120 * gamma(20, wide)
    assert_within(found, cross_entropy_of(logits.astype("float64"), labels, smoothing), bound)
    with pytest.raises(AssertionError, match="too far"):  # planted
        assert_within(found, cross_entropy_of(logits, labels, smoothing + 0.01), bound)


class Spy(nnx.Module):
    """Its gradient is the batch that it saw, and its dropout's draw."""

    def __init__(self, size=16):
        self.seen = nnx.Param(jnp.zeros((size, SIDE, SIDE, 3)))
        self.drawn = nnx.Param(jnp.zeros(()))

    def __call__(self, images, *, training=False, dropout_key=None):
        draw = jax.random.uniform(dropout_key)
        score = jnp.sum(self.seen * images, axis=(1, 2, 3)) + self.drawn * draw
        return jnp.stack([score, -score, -score], axis=1)


# SGD at rate 1 without momentum: the change of `seen` is minus the gradient, a multiple of each
# image by a number that only its label decides, as all scores are zero at first.
PLAIN = {"learning_rate": 1.0, "momentum": 0.0, "weight_decay": 0.0, "warmup": 0.0, "epochs": 40}


@cache
def spying(batch_size):
    """The compiled step and order, the state, the images, and the steps of an epoch."""
    given = settings(**PLAIN, batch_size=batch_size)
    recipe, _, state, data, steps = parts(Spy(batch_size), given)
    order = jax.jit(lambda state: order_of_epoch(state, 70, steps))
    return jax.jit(make_step(recipe, steps)), order, state, data, steps


def batch_of(step, *, seed=0, batch_size=16):
    """What a step sees of the images, and draws for dropout."""
    compiled, order_of, state, data, steps = spying(batch_size)
    key = jax.random.key_data(jax.random.key(seed))
    state = replace(state, step=jnp.asarray(step, jnp.int32), key=key)
    order = order_of(state)
    after, loss = compiled(state, data, order)
    assert float(loss) == pytest.approx(np.log(CLASSES), abs=float(gamma(20, jnp.float32)))
    place = step % steps * batch_size
    indices = order[place : place + batch_size]
    return indices, after.parameters["seen"][...], after.parameters["drawn"][...]


@pytest.mark.slow
def test_a_step_sees_what_seed_epoch_and_index_decide():
    """The same picture of one epoch is the same in whatever batch it is, and else another."""
    indices, seen, drawn = batch_of(5)
    assert_equal(batch_of(5)[1], seen)
    assert len(set(indices.tolist())) == 16
    halves = [batch_of(step, batch_size=8) for step in (9, 10)]  # 8 steps an epoch, not 4
    assert halves[0][0].shape == (8,)
    pictures = dict(zip(indices.tolist(), np.asarray(seen), strict=True))
    shared = 0
    for places, half, _ in halves:
        for index, picture in zip(places.tolist(), np.asarray(half), strict=True):
            if index in pictures:  # the mean over 8, not 16: twice the gradient
                assert_equal(picture, 2 * pictures[index])
                shared += 1
    assert shared
    for other in (batch_of(9), batch_of(5, seed=1)):  # another epoch, another seed
        assert not np.array_equal(other[0], indices)
        assert float(other[2]) != float(drawn)
        common = [
            not np.array_equal(picture, pictures[index])
            for index, picture in zip(other[0].tolist(), np.asarray(other[1]), strict=True)
            if index in pictures
        ]
        assert any(common)  # cropped and mirrored anew


def test_dropout_is_drawn_anew_at_every_step():
    draws = {float(batch_of(step)[2]) for step in range(3)}
    assert len(draws) == 3


def test_an_epoch_sees_every_picture_at_most_once():
    _, order_of, state, _, _ = spying(16)
    orders = []
    for step in (0, 3, 4):
        state = replace(state, step=jnp.asarray(step, jnp.int32))
        orders.append(np.asarray(order_of(state)))
        assert sorted(orders[-1]) == list(range(70))
    assert_equal(orders[0], orders[1])
    assert not np.array_equal(orders[0], orders[2])


@pytest.mark.slow
def test_bfloat16_computes_but_does_not_store():
    """Parameters, momentum and losses stay float32."""
    recipe, _, state, data, steps = parts(
        Dense(dtype=jnp.float32),
        settings(compute_dtype="bfloat16"),
        training_images(),
    )
    order = order_of_epoch(state, 70, steps)
    after, loss = jax.jit(make_step(recipe, steps))(state, data, order)
    assert loss.dtype == jnp.float32
    assert np.isfinite(loss)
    for (name, before), (_, leaf) in zip(named_leaves(state), named_leaves(after), strict=True):
        assert leaf.dtype == before.dtype != jnp.bfloat16, name
