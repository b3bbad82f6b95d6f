"""The evaluation is the mean over all images, each counted once, whatever the batches are."""

from dataclasses import replace

import numpy as np
import pytest
from comparison import assert_within, gamma
from lab.training.test_step import cross_entropy_of
from lab.training.tiny import (
    CLASSES,
    SIDE,
    Normalized,
    assert_same_arrays,
    pictures,
    set_up,
    settings,
)

from convattn_lab.training.devices import place
from convattn_lab.training.program import compile_evaluation
from convattn_lab.training.state import named_arrays


def logits_of(model, images):
    """The model in NumPy, float64: running statistics, and nothing dropped."""
    flat = ((images.images / 255 - 0.5) / 0.25).reshape(len(images), -1)
    norm, dense = model.norm, model.last.dense
    mean, var, scale, bias, kernel, last = (
        np.asarray(parameter[...], np.float64)
        for parameter in (norm.mean, norm.var, norm.scale, norm.bias, dense.kernel, dense.bias)
    )
    normal = (flat - mean) / np.sqrt(var + norm.epsilon) * scale + bias
    return normal @ kernel + last, np.abs(normal) @ np.abs(kernel) + np.abs(last)


@pytest.mark.parametrize("batch", [5, 500])
def test_the_evaluation_is_that_of_numpy(batch):
    """12 images in batches of 5, and of more than there are.

    A logit has fewer than 48 + 16 roundings relative to the sum of its terms' sizes, and the loss
    moves by at most twice as much as the logits; its own roundings are fewer than another 64.
    """
    model = Normalized()
    model.norm.mean[...] = np.linspace(-0.5, 0.5, 3 * SIDE**2, dtype=np.float32)
    model.norm.var[...] = np.linspace(0.5, 2, 3 * SIDE**2, dtype=np.float32)
    images = replace(pictures(12, 3), labels=np.arange(12, dtype=np.uint8) % CLASSES)
    recipe, mesh, state, _, _ = set_up(model, settings(label_smoothing=0.5))
    before = named_arrays(state)
    evaluate = compile_evaluation(recipe, mesh, batch)
    loss, accuracy = evaluate(state, place(recipe.examples.arrays(images), mesh))
    logits, size = logits_of(model, images)
    losses = cross_entropy_of(logits, images.labels, 0.0)
    bound = 3 * gamma(128, np.float32) * size.max()
    assert_within(loss, losses.mean(), bound)
    assert 0 < accuracy == (logits.argmax(axis=1) == images.labels).mean() < 1
    assert_same_arrays(named_arrays(state), before)
    if batch == 5:  # planted: the three images that fill the last batch are counted, too
        with pytest.raises(AssertionError, match="too far"):
            assert_within(loss, np.concatenate([losses, losses[:3]]).mean(), bound)
