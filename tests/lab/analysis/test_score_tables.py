import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal, assert_within, gamma
from lab.analysis.synthetic_runs import gaussian_scores

from convattn.encodings import GaussianEncoding
from convattn.encodings.layer import AttentionLayer
from convattn.fast.dense import softmax_weights
from convattn.lab.analysis.score_tables import attention_matrix, query_attention
from convattn.operators.shifts import TokenGrid

SIDES = (3, 4)
RNG = np.random.default_rng(3)
CENTERS, ROOTS = RNG.normal(size=(2, 2)), RNG.normal(size=(2, 2, 2))


def test_the_attention_is_that_of_the_layer() -> None:
    layer = AttentionLayer(GaussianEncoding(jnp.array(CENTERS), jnp.array(ROOTS)), None, None)
    expected = softmax_weights(layer, TokenGrid(SIDES, ((0, 0), (0, 0))), None)
    scores = gaussian_scores(CENTERS, ROOTS, SIDES)
    # Scores are below 100, and each is rounded a dozen times; the exponential makes that relative.
    slack = gamma(100 * 50, float)
    assert np.abs(scores).max() < 100
    found = attention_matrix(scores).reshape(2, 12, 12)
    assert_within(found, expected, slack)


def test_a_query_is_a_row_of_the_matrix() -> None:
    scores = gaussian_scores(CENTERS, ROOTS, SIDES)
    assert_equal(query_attention(scores, (2, 1)), attention_matrix(scores)[:, 2, 1])


def test_a_swapped_table_is_seen() -> None:
    scores = gaussian_scores(CENTERS, ROOTS, SIDES)
    mirrored = attention_matrix(scores[:, ::-1])
    assert np.abs(mirrored - attention_matrix(scores)).max() > 0.01


def test_large_scores_do_not_overflow() -> None:
    scores = np.zeros((1, 3, 3))
    scores[0, 1, 1] = 1e6
    assert query_attention(scores, (0, 0)).tolist() == [[[1, 0], [0, 0]]]


def test_no_heads_have_no_attention() -> None:
    assert attention_matrix(np.zeros((0, 5, 7))).shape == (0, 3, 4, 3, 4)
    assert query_attention(np.zeros((0, 5, 7)), (0, 0)).shape == (0, 3, 4)


@pytest.mark.parametrize("query", [(-1, 0), (3, 0), (0, 4)])
def test_a_query_outside_the_image_is_refused(query) -> None:
    with pytest.raises(ValueError, match="rows are 0 to 2 and columns 0 to 3"):
        query_attention(np.zeros((1, 5, 7)), query)
