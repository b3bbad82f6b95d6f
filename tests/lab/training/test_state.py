"""The arrays of a state have names, and go back only where they fit."""

import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal
from lab.training.tiny import Normalized, settings

from convattn_lab.training.optimizer import make_optimizer
from convattn_lab.training.state import (
    initial_state,
    named_arrays,
    named_leaves,
    with_named_arrays,
)


def state(seed=0):
    return initial_state(Normalized(seed), make_optimizer(settings(), 12), seed)[1]


def test_a_state_holds_all_that_a_run_needs():
    """Parameters, running statistics, momentum, the optimiser's step, the step, and the key."""
    named = named_arrays(state())
    for part in (
        "parameters.last.dense.kernel",
        "statistics.norm.mean",
        "trace.last.dense.bias",
        "count",
        "step",
        "key",
        "loss_sum",
        "correct",
    ):
        assert any(part in name for name in named), part
    assert named["key"].dtype == np.uint32
    assert named["step"].dtype == np.int32
    assert not np.array_equal(named["key"], named_arrays(state(1))["key"])


def test_arrays_go_back_under_their_names():
    one, other = state(), state(1)
    found = with_named_arrays(one, named_arrays(other))
    for (name, array), (_, wanted) in zip(named_leaves(found), named_leaves(other), strict=True):
        assert_equal(array, wanted, name)


def test_arrays_that_do_not_fit_are_refused():
    tree = {"a": jnp.zeros(2), "b": jnp.zeros((), jnp.int32)}
    named = named_arrays(tree)
    with pytest.raises(ValueError, match=r"missing \['b'\], not expected \['c'\]"):
        with_named_arrays(tree, {"a": named["a"], "c": named["b"]})
    with pytest.raises(ValueError, match=r"a is .*\[3\], but the model has .*\[2\]"):
        with_named_arrays(tree, {**named, "a": np.zeros(3)})
    with pytest.raises(ValueError, match=r"b is float32.*, but the model has int32"):
        with_named_arrays(tree, {**named, "b": np.zeros((), np.float32)})


def test_two_arrays_of_one_name_are_refused():
    with pytest.raises(ValueError, match=r"several arrays are named \['a.0'\]"):
        named_leaves({"a": (1,), "a.0": 2})
