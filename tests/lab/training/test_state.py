"""The arrays of a state have names, and go back only where they fit."""

import jax.numpy as jnp
import numpy as np
import pytest
from lab.training.tiny import Normalized, settings

from convattn_lab.training.optimizer import make_optimizer
from convattn_lab.training.state import initial_state, named_arrays, named_leaves, with_named_arrays


def state(seed=0):
    return initial_state(Normalized(seed), make_optimizer(settings(), 12), seed)[1]


def test_a_state_holds_all_that_a_run_needs():
    """Parameters, running statistics, momentum, the optimiser's step, the step, and the key."""
    named = named_arrays(state())
    for part in (
        *("parameters.last.dense.kernel", "statistics.norm.mean", "trace.last.dense.bias"),
        *("count", "step", "key", "loss_sum", "correct"),
    ):
        assert any(part in name for name in named), part
    assert (named["key"].dtype, named["step"].dtype) == (np.uint32, np.int32)
    assert not np.array_equal(named["key"], named_arrays(state(1))["key"])


TREE = {"a": jnp.zeros(2), "b": jnp.zeros((), jnp.int32)}
NAMED = named_arrays(TREE)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"a": NAMED["a"], "c": NAMED["b"]}, r"missing \['b'\], not expected \['c'\]"),
        ({**NAMED, "a": np.zeros(3)}, r"a is .*\[3\], .* \S+\[2\]"),
        ({**NAMED, "b": np.zeros((), np.float32)}, "b is float32.* int32"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(arrays, message):
    with pytest.raises(ValueError, match=message):
        with_named_arrays(TREE, arrays)


def test_two_arrays_of_one_name_are_refused():
    with pytest.raises(ValueError, match=r"\['a.0'\]"):
        named_leaves({"a": (1,), "a.0": 2})
