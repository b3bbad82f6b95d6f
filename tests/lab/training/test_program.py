"""However the steps of a run are divided into calls, they give the same bits."""

import jax
import numpy as np
import pytest
from lab.training.tiny import Convolved, Normalized, assert_same_arrays, placed, set_up, settings

from convattn_lab.training import program as programs
from convattn_lab.training.program import compile_program, has_convolution, is_finite
from convattn_lab.training.state import named_arrays, named_leaves
from convattn_lab.training.step import make_step, order_of_epoch


def compiled():
    """A function of the numbers of steps of each call, to the state's arrays and the losses."""
    recipe, mesh, state, data, steps = set_up(Normalized(), settings())
    program = compile_program(recipe, mesh, state, data, steps)

    def train(*counts):
        current, losses = placed(state, mesh), []
        for done, count in zip(np.cumsum((0, *counts)), counts, strict=False):
            if done % steps == 0:
                order = program.order(current)
            current, of_call = program.advance(current, data, order, count)
            assert of_call.shape == (count,)
            losses += of_call.tolist()
        return named_arrays(current), losses

    return program, train


def assert_same_bits(one, other):
    assert one[1] == other[1]
    assert_same_arrays(one[0], other[0])


@pytest.fixture(scope="module")
def looped():
    program, train = compiled()
    assert program.looped
    return train


@pytest.fixture(scope="module")
def uninterrupted(looped):
    return looped(4, 4)


@pytest.mark.slow
def test_any_division_into_calls_gives_the_same_bits(looped, uninterrupted):
    assert_same_bits(looped(1, 3, 2, 1, 1), uninterrupted)
    with pytest.raises(AssertionError):  # planted: a step fewer
        assert_same_bits(looped(4, 3), uninterrupted)


@pytest.mark.slow
def test_one_call_for_each_step_gives_the_bits_of_the_loop(uninterrupted, monkeypatch):
    """XLA does not promise it: here the loop's body is compiled as the step alone is."""
    monkeypatch.setattr(programs, "has_convolution", lambda *_: True)
    program, train = compiled()
    assert not program.looped
    assert_same_bits(train(4, 1, 3), uninterrupted)


@pytest.mark.slow
@pytest.mark.parametrize(("model", "expected"), [(Convolved, True), (Normalized, False)])
def test_a_convolution_is_noticed_wherever_it_is(model, expected):
    """So that on a CPU it is called step by step."""
    recipe, _, state, data, steps = set_up(model(), settings())
    order = jax.eval_shape(lambda state: order_of_epoch(state, 70, 4), state)
    assert has_convolution(make_step(recipe, steps), state, data, order) is expected


@pytest.mark.slow
def test_the_state_is_donated():
    recipe, mesh, state, data, steps = set_up(Normalized(), settings())
    program = compile_program(recipe, mesh, state, data, steps)
    program.advance(state, data, program.order(state), 2)
    alive = [name for name, leaf in named_leaves(state) if leaf.size and not leaf.is_deleted()]
    assert alive == []
    assert not data.images.is_deleted()


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_one_number_that_is_not_finite_is_noticed(wrong):
    tree = {"a": np.zeros(3, np.float32), "b": np.zeros((), np.int32)}
    assert is_finite(tree)
    tree["a"][1] = wrong
    assert not is_finite(tree)
