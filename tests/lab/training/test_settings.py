"""Settings out of their ranges are refused with the range."""

import dataclasses
from math import inf, nan

import pytest

from convattn.lab.training.settings import TrainingSettings

WRONG = {
    "epochs": (0, "at least 1"),
    "batch_size": (0, "at least 1"),
    "evaluate_every": (0, "at least 1"),
    "keep_checkpoints": (0, "at least 1"),
    "devices": (0, "at least 1"),
    "steps_per_call": (0, "at least 1"),
    "snapshot_every": (0, "at least 1"),
    "learning_rate": (-0.1, "at least 0"),
    "weight_decay": (nan, "at least 0"),
    "checkpoint_minutes": (inf, "at least 0"),
    "epsilon": (-1e-9, "at least 0"),
    "momentum": (1.0, "0 ≤ momentum < 1"),
    "beta1": (1.0, "0 ≤ beta1 < 1"),
    "beta2": (-0.5, "0 ≤ beta2 < 1"),
    "label_smoothing": (1.0, "0 ≤ label_smoothing < 1"),
    "warmup": (1.5, "0 to 1"),
    "seed": (2**32, "2³² - 1"),
    "optimizer": ("adam", "sgd, adamw"),
    "schedule": ("linear", "cosine, constant"),
    "compute_dtype": ("float16", "float32, bfloat16"),
    "select": ("test", "last, best"),
}


@pytest.mark.parametrize(("name", "wrong"), WRONG.items(), ids=WRONG)
def test_a_value_out_of_range_is_refused(name, wrong):
    value, expected = wrong
    with pytest.raises(ValueError, match=f"^{name}={value!r}, but expected .*{expected}"):
        TrainingSettings(**{name: value})


def test_every_field_has_a_range():
    """So that a field that is added is not forgotten here."""
    assert {field.name for field in dataclasses.fields(TrainingSettings)} == set(WRONG)


@pytest.mark.parametrize("name", ["warmup", "learning_rate", "momentum", "seed"])
def test_the_borders_are_allowed(name):
    assert getattr(TrainingSettings(**{name: 0}), name) == 0
