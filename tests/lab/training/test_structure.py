"""The digest of a model's structure: equal in all processes, different for different models."""

import subprocess
import sys
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from lab.training.tiny import CLASSES, SIDE, Convolved, Dense, Normalized, process_environment

from convattn_lab.models.build import build_model
from convattn_lab.models.settings import EncoderSettings
from convattn_lab.training.structure import describe, digest_of_structure


class Holding(nnx.Module):
    """Something static of every sort."""

    def __init__(self, rate=0.5):
        def scaled(x):
            return rate * x

        self.held = nnx.static((scaled, partial(jax.nn.relu, rate), jax.nn.gelu, object()))
        self.names = nnx.static(frozenset({"a", "b", "c", "d"}))


def encoder():
    settings = EncoderSettings(heads=(3,), width=8, inner=6)
    return build_model(settings, classes=CLASSES, image_size=(SIDE, SIDE), rngs=nnx.Rngs(0))


MODELS = (Convolved, Normalized, Holding, encoder)


def digests(models=MODELS):
    """Nothing is computed for them."""
    return [digest_of_structure(nnx.graphdef(nnx.eval_shape(model))) for model in models]


@pytest.mark.slow
def test_two_processes_agree():
    """Their objects lie elsewhere, and their sets have another order."""
    code = "from lab.training.test_structure import digests; print(*digests())"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=process_environment(PYTHONHASHSEED="7"),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == digests()
    assert len(set(digests())) == len(MODELS)


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        (partial(Dense, 0), partial(Dense, 1), True),  # arrays do not count
        (partial(Dense, dropout=0.25), partial(Dense, dropout=0.75), False),
        (Dense, partial(Dense, dtype=jnp.bfloat16), False),
        (partial(Holding, 0.5), partial(Holding, 0.25), False),
        (Dense, Normalized, False),
    ],
)
def test_what_is_static_counts(one, other, equal):
    first, second = digests([one, other])
    assert (first == second) is equal


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0),
        (1, "1"),
        ((1, 2), [1, 2]),
        (jax.nn.relu, jax.nn.gelu),
        (partial(jax.nn.relu, 1), partial(jax.nn.relu, 2)),
        (np.zeros(2), np.zeros((2, 1))),
        (np.zeros(2), np.ones(2)),
        (np.dtype("float32"), np.dtype("float64")),
    ],
)
def test_descriptions_differ(one, other):
    assert describe(one) != describe(other)


def test_a_ring_of_objects_is_not_followed():
    ring = [1]
    ring.append(ring)
    assert describe(ring) == "list[1, ring]"
