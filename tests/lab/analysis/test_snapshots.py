import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal, assert_within, gamma
from lab.analysis.synthetic_runs import TINY, gaussian_scores, random_snapshot, write_run

from convattn.encodings import GaussianEncoding
from convattn.encodings.layer import AttentionLayer
from convattn.fast.dense import softmax_weights
from convattn.operators.shifts import TokenGrid
from convattn_lab.analysis.snapshots import (
    attention_matrix,
    query_attention,
    read_layers,
    spread_epochs,
)
from convattn_lab.models.settings import ResNetSettings

SIDES = (3, 4)
RNG = np.random.default_rng(3)
CENTERS, ROOTS = RNG.normal(size=(2, 2)), RNG.normal(size=(2, 2, 2))
SCORES = gaussian_scores(CENTERS, ROOTS, SIDES)


def test_a_snapshot_is_read_layer_by_layer(stored_run) -> None:
    for requested, epoch in ((None, 4), (2, 2)):
        result, layers = read_layers(stored_run, requested)
        stored = random_snapshot(TINY, epoch)
        assert result == epoch
        assert len(layers) * len(layers[0]) == len(stored)
        for name, array in stored.items():
            layer, _, array_name = name.partition(".")
            assert_equal(layers[int(layer[-1]) - 1][array_name], array)


def test_runs_without_attention_snapshots_or_that_epoch_are_refused(stored_run, tmp_path) -> None:
    with pytest.raises(ValueError, match=r"epoch 3; .*\[0, 2, 4\]"):
        read_layers(stored_run, 3)
    with pytest.raises(ValueError, match="kind="):
        read_layers(write_run(tmp_path / "resnet", ResNetSettings()))
    with pytest.raises(ValueError, match="no snapshots of the attention yet"):
        read_layers(write_run(tmp_path / "young", snapshots={}))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"layer1.scores": None}, r"layer1\.scores is missing"),
        ({"layer2.centers": np.zeros((2, 3))}, r"layer2\.centers is float64 \(2, 3\)"),
        ({"layer1.scores": np.zeros((3, 7, 8))}, r"layer1\.scores is float64 \(3, 7, 8\)"),
        ({"layer1.scores": np.zeros((1, 7, 9))}, r"layer1\.scores is float64 \(1, 7, 9\)"),
        ({"layer3.scores": np.zeros((3, 7, 9))}, r"'layer3\.scores' is of no layer of 2"),
        ({"layerx.scores": np.zeros((3, 7, 9))}, r"'layerx\.scores' is of no layer"),
    ],
)
def test_a_damaged_snapshot_is_refused(tmp_path, change, message) -> None:
    arrays = {**random_snapshot(TINY, 4), **change}
    stored = {name: array for name, array in arrays.items() if array is not None}
    run = write_run(tmp_path / "run", snapshots={4: stored})
    (run / "snapshots" / "epoch-x.npz").write_bytes(b"")  # of no epoch
    with pytest.raises(ValueError, match=f"in the snapshot of epoch 4, {message}"):
        read_layers(run)


@pytest.mark.parametrize(("best", "expected"), [(1, 2), (2, 2), (3, 4), (4, 4)])
def test_the_snapshot_is_the_one_nearest_to_the_chosen_epoch(tmp_path, best, expected) -> None:
    validation = [0.5 if epoch == best else 0.1 for epoch in (1, 2, 3, 4)]
    run = write_run(tmp_path / "run", select="best", validation=validation)
    assert read_layers(run)[0] == expected
    assert read_layers(write_run(tmp_path / "last", validation=validation))[0] == 4
    young = write_run(tmp_path / "young", select="best", validation=validation, finished=False)
    assert read_layers(young)[0] == 4


@pytest.mark.parametrize("count", [2, 3, 6, 16])
def test_first_and_last_are_among_spread_epochs(count) -> None:
    epochs = list(range(0, 301, 5))
    result = spread_epochs(epochs, count)
    assert (result[0], result[-1]) == (0, 300)
    assert len(result) <= count
    assert result == sorted(set(result) & set(epochs))
    assert spread_epochs([7, 8, 9, 20], 3) == [7, 8, 20]


@pytest.mark.slow
def test_the_attention_is_that_of_the_layer() -> None:
    layer = AttentionLayer(GaussianEncoding(jnp.array(CENTERS), jnp.array(ROOTS)), None, None)
    expected = softmax_weights(layer, TokenGrid(SIDES, ((0, 0), (0, 0))), None)
    # Scores are below 100, and each is rounded a dozen times; the exponential makes that relative.
    slack = gamma(100 * 50, float)
    assert np.abs(SCORES).max() < 100
    result = attention_matrix(SCORES)
    assert_within(result.reshape(2, 12, 12), expected, slack)
    assert_equal(query_attention(SCORES, (2, 1)), result[:, 2, 1])
    assert np.abs(attention_matrix(SCORES[:, ::-1]) - result).max() > 0.01


def test_large_scores_do_not_overflow_and_no_heads_have_no_attention() -> None:
    scores = np.zeros((1, 3, 3))
    scores[0, 1, 1] = 1e6
    assert query_attention(scores, (0, 0)).tolist() == [[[1, 0], [0, 0]]]
    assert attention_matrix(np.zeros((0, 5, 7))).shape == (0, 3, 4, 3, 4)
    assert query_attention(np.zeros((0, 5, 7)), (0, 0)).shape == (0, 3, 4)
