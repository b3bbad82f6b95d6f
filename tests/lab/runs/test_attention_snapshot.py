"""The summary of a layer, against its own operators."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_within
from lab.analysis.synthetic_runs import gaussian_scores
from lab.models.tiny import filled

from convattn.operators.shifts import TokenGrid
from convattn_lab.models.settings import EncoderSettings, ResNetSettings
from convattn_lab.models.sizes import abstract_model
from convattn_lab.runs.attention_snapshot import attention_snapshot, content_at_zero

GRID = TokenGrid((3, 2), ((0, 0), (0, 0)))


def model_of(encoding: str):
    settings = EncoderSettings(encoding, heads=(3, 0), width=4, inner=4)
    return filled(abstract_model(settings, classes=2, image_size=(6, 4)))


@pytest.mark.slow
def test_content_at_zero_is_what_the_layer_scores_there() -> None:
    content = model_of("content").attention_layers()[0].content
    integers = iter(range(100))

    def rounded(array: jax.Array) -> jax.Array:
        numbers = np.random.default_rng(next(integers)).integers(-8, 9, array.shape)
        return jnp.asarray(numbers, jnp.float64)

    content = jax.tree.map(rounded, content)  # √4 divides by 2, so that all of it is exact
    zeros = jnp.zeros((1, 6, 4))
    scores = content.scores(zeros, zeros, GRID)[0]  # [heads, queries, keys]
    table = content_at_zero(content, GRID)
    result = table[:, GRID.shift_index()]
    constant = jnp.sum(content.query_bias * content.key_bias, -1) / 2
    assert (scores == result + constant[:, None, None]).all()
    assert len(np.unique(np.asarray(table))) > 10


def test_without_tables_content_scores_nothing_at_zero() -> None:
    content = model_of("content").attention_layers()[0].content
    for name in ("tables", "query_bias"):
        bare = type(content)(**{**vars(content), name: None})
        assert (content_at_zero(bare, GRID) == jnp.zeros((3, 15))).all()


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["quadratic", "gaussian", "learned"])
def test_the_table_holds_the_scores_of_every_shift(encoding) -> None:
    model = model_of(encoding)
    arrays = attention_snapshot(model, (6, 4))
    layer = model.attention_layers()[0]
    assert arrays["layer1.scores"].shape == (3, 5, 3)
    assert arrays["layer2.scores"].shape == (0, 5, 3)
    if encoding != "learned":
        centers, roots = arrays["layer1.centers"], arrays["layer1.root_precision"]
        expected = gaussian_scores(np.float64(centers), np.float64(roots), (3, 2))
        # eight roundings in float32, of at most ten times these sizes
        allowed = 80 * 2.0**-24 * (1 + np.abs(expected).max())
        assert_within(arrays["layer1.scores"], expected, allowed)
    else:
        assert "layer1.centers" not in arrays
    value = np.asarray(layer.value, np.float64).reshape(3, -1)
    gram = np.asarray(arrays["layer1.value_gram"])
    allowed = 16 * 2.0**-23 * (np.abs(value) @ np.abs(value).T)
    assert_within(gram, value @ value.T, allowed)
    assert np.abs(gram).max() > 0


def test_other_models_have_no_attention() -> None:
    settings = ResNetSettings(channels=(2,), blocks=(1,))
    model = filled(abstract_model(settings, classes=2, image_size=(4, 4)))
    assert attention_snapshot(model, (4, 4)) == {}
