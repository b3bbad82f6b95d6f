"""By which back end attention is run, and where its bound covers that."""

import jax.numpy as jnp
import numpy as np
import pytest

import convattn as ca
from convattn.networks import runs
from convattn.networks.runs import covered_backend, few
from convattn.networks.steps import Convolution


@pytest.mark.parametrize(
    ("sides", "leak", "backend"),
    [
        ((4, 3), 0.5, "dense"),  # with the ring 18 keys, 15 more than taps
        ((17, 1), 0.5, "shift"),  # 19 keys
        ((8, 2), 0.95, "shift"),  # 20 · (1/0.95 - 1) is 1.05
        ((8, 2), 0.96, "dense"),  # and 0.83
    ],
)
def test_shifts_need_sixteen_more_keys_than_taps_and_a_leak_that_is_not_near_one(
    sides, leak, backend
) -> None:
    layer = ca.conv_to_attention(np.ones((3, 1, 1, 1), np.float32), leak=leak)
    assert covered_backend(layer, np.ones((1, *sides, 1), np.float32)) == backend


@pytest.mark.usefixtures("unchecked")
def test_a_program_for_few_images_is_compiled_soon(monkeypatch) -> None:
    """Each with the layer, the images and the back end that the bound covers."""
    step = Convolution(jnp.ones((1, 1, 1, 1)), jnp.ones(1), 1, "step")
    layer, images = ca.conv_to_attention(np.ones((1, 1, 1, 1))), np.ones((1, 2, 2, 1))
    monkeypatch.setattr(runs, "attend", lambda *given: ("attend", *given))
    monkeypatch.setattr(runs, "attend_soon", lambda *given: ("soon", *given))
    run = runs.AttentionRun({"other": None, "step": layer})
    single = images.astype(np.float32)
    for given, program in ((images, "soon"), (single, "attend")):
        name, *passed = run.apply(step, given)
        assert name == program
        assert passed[0] is layer
        assert passed[1] is given
        assert passed[2] == "dense"


def test_only_images_in_float64_are_few() -> None:
    images = np.ones((1, 2, 2, 1))
    assert few(images)
    assert not few(images.astype(np.float32))
