"""The digest of a model's structure: equal in all processes, different for different models."""

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from lab.training.tiny import CLASSES, SIDE, Convolved, Dense, Normalized

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


def models():
    encoder = EncoderSettings(heads=(3,), width=8, inner=6)

    def built():
        rngs = nnx.Rngs(0)
        return build_model(encoder, classes=CLASSES, image_size=(SIDE, SIDE), rngs=rngs)

    return [Convolved, Normalized, Holding, built]


def digests():
    """Nothing is computed for them."""
    return [digest_of_structure(nnx.graphdef(nnx.eval_shape(model))) for model in models()]


@pytest.mark.slow
def test_two_processes_agree():
    """Their objects lie elsewhere, and their sets have another order."""
    words = "from lab.training.test_structure import digests; print(*digests())"
    paths = [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
    here = {"PYTHONPATH": os.pathsep.join(filter(None, paths)), "PYTHONHASHSEED": "7"}
    told = subprocess.run(
        [sys.executable, "-c", words], env={**os.environ, **here}, capture_output=True, text=True
    )
    assert told.returncode == 0, told.stderr
    assert told.stdout.split() == digests()
    assert len(set(digests())) == len(models())


def test_the_arrays_do_not_count():
    assert digest_of_structure(nnx.graphdef(Dense(0))) == digest_of_structure(
        nnx.graphdef(Dense(1))
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (lambda: Dense(dropout=0.25), lambda: Dense(dropout=0.75)),
        (lambda: Dense(), lambda: Dense(dtype=jnp.bfloat16)),
        (lambda: Holding(0.5), lambda: Holding(0.25)),
        (lambda: Dense(), lambda: Normalized()),
    ],
)
def test_what_is_static_counts(one, other):
    assert digest_of_structure(nnx.graphdef(one())) != digest_of_structure(nnx.graphdef(other()))


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
def test_descriptions_tell_apart(one, other):
    assert describe(one) != describe(other)
