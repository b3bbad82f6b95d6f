"""Examples of another kind than images: several classes to tell of each, and soft targets."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal, assert_within, gamma
from flax import nnx
from lab.training.test_step import cross_entropy_of
from lab.training.tiny import settings

from convattn_lab.training.examples import TrainingExamples
from convattn_lab.training.metrics import read_metrics
from convattn_lab.training.step import correct_positions, cross_entropy, mean_over_positions
from convattn_lab.training.trainer import train

CLASSES, LENGTH = 3, 4


@dataclass(frozen=True, eq=False)
class Sequences(TrainingExamples):
    """Rows of class numbers, each of which is to be repeated; soft ones as distributions."""

    train: np.ndarray
    test: np.ndarray
    soft: bool = False
    unit_name = "sequences"
    positions = LENGTH
    validation = None

    def arrays(self, examples):
        return {"tokens": examples}

    def load(self, arrays, indices, keys, dtype):
        tokens = arrays["tokens"][indices]
        named = jax.nn.one_hot(tokens, CLASSES, dtype=dtype)
        return named, 0.75 * named + 0.25 / CLASSES if self.soft and keys is not None else tokens

    def identity(self):
        return {"sequences": self.train.tolist()}


class Speaker(nnx.Module):
    """One linear map for all positions."""

    def __init__(self):
        self.dense = nnx.Linear(CLASSES, CLASSES, precision="highest", rngs=nnx.Rngs(0))

    def __call__(self, inputs, *, training=False, dropout_key=None):
        return self.dense(inputs)


def rows(count, seed):
    return np.random.default_rng(seed).integers(0, CLASSES, (count, LENGTH), np.int32)


@pytest.mark.slow
@pytest.mark.parametrize("soft", [False, True])
def test_the_trainer_takes_several_targets_of_an_example(soft, tmp_path):
    """It learns to repeat them; fractions are of all positions, and so lie between 0 and 1."""
    examples = Sequences(rows(64, 0), rows(9, 1), soft)
    chosen = settings(epochs=20, learning_rate=0.5, checkpoint_minutes=5.0)
    outcome = train(chosen, examples, Speaker(), tmp_path)
    assert (outcome.status, outcome.test_accuracy) == ("finished", 1)
    lines = read_metrics(tmp_path)
    assert lines[-1]["train_accuracy"] == 1
    assert all(0 <= line["train_accuracy"] <= 1 for line in lines)
    assert lines[-1]["train_loss"] < lines[0]["train_loss"]
    logits = np.asarray(outcome.model(np.eye(CLASSES, dtype=np.float32)[examples.test]))
    losses = cross_entropy_of(logits.reshape(-1, CLASSES), examples.test.ravel(), 0.0)
    bound = 8 * gamma(64, np.float32) * (np.abs(logits).max() + 2)
    assert_within(outcome.test_loss, losses.mean(), bound)


@pytest.mark.parametrize("smoothing", [0.0, 0.125])
def test_soft_targets(smoothing):
    """A mixture's cross entropy is the mixture of the cross entropies."""
    logits = jnp.asarray(np.random.default_rng(0).normal(size=(5, CLASSES)), jnp.float32)
    one, other = np.array([0, 1, 2, 0, 1]), np.array([1, 1, 0, 2, 0])
    mixed = 0.25 * np.eye(CLASSES)[one] + 0.75 * np.eye(CLASSES)[other]  # exact in binary
    losses = cross_entropy(logits, jnp.asarray(mixed, jnp.float32), smoothing)
    first, second = (cross_entropy_of(logits, labels, smoothing) for labels in (one, other))
    assert_within(losses, 0.25 * first + 0.75 * second, 16 * gamma(20, np.float32))
    with pytest.raises(AssertionError, match="too far"):  # planted
        assert_within(losses, first, 16 * gamma(20, np.float32))


def test_correct_positions():
    logits = jnp.eye(CLASSES)[jnp.array([[0, 1, 2, 0], [1, 1, 1, 1]])]
    hard = jnp.array([[0, 1, 2, 1], [0, 0, 0, 1]])
    soft = 0.5 * jax.nn.one_hot(hard, CLASSES) + 0.1
    assert correct_positions(logits, hard).tolist() == [3, 1]
    assert correct_positions(logits, soft).tolist() == [3, 1]
    assert correct_positions(logits[:, 0], hard[:, 0]).tolist() == [1, 0]
    assert_equal(mean_over_positions(jnp.array([[1.0, 3.0], [2.0, 6.0]])), [2.0, 4.0])
