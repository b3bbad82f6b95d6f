import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_within, gamma

from convattn import attention_to_conv, conv_to_attention
from convattn.constructions.linear_map import layer_maps
from convattn.diagnosis import convolution_distance as module
from convattn.diagnosis.convolution_distance import (
    convolution_distance,
    inside_queries,
)
from convattn.encodings import GaussianEncoding
from convattn.encodings.layer import AttentionLayer
from convattn.fast.dense import layer_weights
from convattn.operators.shifts import TokenGrid

SIDES = (4, 5)


def trained(heads: int, seed: int, ring=((0, 0), (0, 0))) -> AttentionLayer:
    """A layer such as training leaves, in float64."""
    rng = np.random.default_rng(seed)
    encoding = GaussianEncoding(
        jnp.array(rng.normal(size=(heads, 2))), jnp.array(rng.normal(size=(heads, 2, 2)))
    )
    return AttentionLayer(encoding, None, jnp.array(rng.normal(size=(heads, 2, 3))), ring=ring)


def parts(layer: AttentionLayer) -> tuple[np.ndarray, np.ndarray]:
    """The attention among the image's own tokens, and ⟨W_g, W_h⟩."""
    grid = TokenGrid(SIDES, layer.ring)
    interior = np.ravel_multi_index(tuple(grid.query_positions.T), grid.keys)
    weights = np.asarray(layer_weights(layer, grid, None))[:, :, interior]
    maps = np.asarray(layer_maps(layer, jnp.dtype("float64"))).reshape(layer.heads, -1)
    return weights.reshape(layer.heads, *SIDES, *SIDES), maps @ maps.T


def check(layer: AttentionLayer, size: int | tuple[int, int], dilation: tuple[int, int]) -> float:
    """The distance without the linear map is that with it, up to rounding.

    With S = Σ_h |A_h||W_h| every inner product is wrong by at most γ_n S², n the most roundings
    on the way of one number, D_h = A_h - P A_h by 2γ_n |A_h|, and |L - C| of the formed map by
    2γ_n S. A root divides the error of a square by the root itself.
    """
    attention, gram = parts(layer)
    distance = convolution_distance(attention, gram, size, dilation=dilation)
    _, _, residual = attention_to_conv(layer, size, image_size=SIDES)
    expected = float(residual.relative_frobenius)
    tokens, heads = int(np.prod(SIDES)), layer.heads
    roundings = gamma(tokens**2 + heads**2 + 2 * gram.size + tokens + 20, float)
    norm = np.sqrt(np.sum((attention.reshape(heads, -1) @ attention.reshape(heads, -1).T) * gram))
    scale = np.sum(np.linalg.norm(attention.reshape(heads, -1), axis=1) * np.sqrt(np.diag(gram)))
    ratio = scale / norm
    slack = 8 * roundings * ratio * (ratio / expected + ratio + 1)
    assert slack < 1e-9
    assert_within(distance.relative, expected, slack)
    assert_within(distance.fraction, 1 - expected**2, 3 * slack)
    return distance.relative


@pytest.mark.slow
def test_it_is_the_residual_of_the_recovered_convolution() -> None:
    assert check(trained(3, 0), (2, 5), (1, 1)) > 0.1


@pytest.mark.slow
def test_so_it_is_with_a_ring_and_a_dilation() -> None:
    layer = trained(2, 1, ring=((1, 0), (2, 1)))
    dilated = AttentionLayer(layer.encoding, None, layer.output, dilation=(2, 1), ring=layer.ring)
    check(dilated, 3, (2, 1))


WRONG = {
    "tap_means": lambda right: lambda *args: 0.9 * right(*args),
    "axis_taps": lambda right: lambda size: [-tap for tap in right(size)],
}


@pytest.mark.slow
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_projection_and_a_mirrored_tap_are_seen(monkeypatch, name) -> None:
    monkeypatch.setattr(module, name, WRONG[name](getattr(module, name)))
    with pytest.raises(AssertionError):
        check(trained(3, 0), (2, 5), (1, 1))


def test_layers_that_are_convolutions_have_no_distance() -> None:
    kernel = np.random.default_rng(0).integers(-4, 5, (3, 3, 2, 3)).astype(float)
    layer = conv_to_attention(kernel, encoding="quadratic")
    distance = convolution_distance(*parts(layer), 3)
    assert distance.relative == 0
    assert distance.heads.tolist() == [0] * layer.heads
    # Two sums of the same nonnegative numbers.
    assert distance.fraction == 1


def test_a_smaller_kernel_leaves_the_outer_taps() -> None:
    kernel = np.zeros((3, 3, 1, 1))
    kernel[1, 1], kernel[0, 1] = 3.0, 4.0
    layer = conv_to_attention(kernel, encoding="quadratic")
    distance = convolution_distance(*parts(layer), 1)
    # 20 pairs of the centre, 15 of the tap above it: 16·15 of 9·20 + 16·15.
    assert_within(distance.relative**2, 240 / 420, gamma(2000, float))
    assert sorted(set(distance.heads.tolist())) == [0, 1]


def test_heads_that_take_each_other_away_leave_nothing() -> None:
    attention, _ = parts(trained(1, 5))
    twice = np.concatenate([attention, attention])
    distance = convolution_distance(twice, np.array([[1.0, -1.0], [-1.0, 1.0]]), 3)
    assert (distance.relative, distance.fraction) == (0, 1)
    assert distance.heads[0] == distance.heads[1] > 0.1


def shift_with_edges(shift: tuple[int, int]) -> np.ndarray:
    """A head that attends to one shift, and to the nearest token of the edge where that is none."""
    rows, columns = np.indices(SIDES)
    keys = (rows + shift[0]).clip(0, SIDES[0] - 1), (columns + shift[1]).clip(0, SIDES[1] - 1)
    attention = np.zeros((*SIDES, *SIDES))
    attention[rows, columns, *keys] = 1
    return attention


def test_what_a_shift_does_at_the_border_counts_only_with_all_queries() -> None:
    attention = np.stack([shift_with_edges((-1, 1)), shift_with_edges((0, -1))])
    gram = np.array([[2.0, 1.0], [1.0, 3.0]])
    assert convolution_distance(attention, gram, 3).relative > 0.3
    inside = convolution_distance(attention, gram, 3, queries="inside")
    assert (inside.relative, inside.fraction, inside.heads.tolist()) == (0, 1, [0, 0])
    attention[0, 1, 1] = 1 / 20  # one of the 2 × 3 queries inside attends to all tokens alike
    assert convolution_distance(attention, gram, 3, queries="inside").relative > 0.1


def test_inside_it_is_the_distance_of_the_formed_map() -> None:
    """L[q, k] of the six queries inside, and the nearest C by the mean of each tap."""
    rng = np.random.default_rng(3)
    attention = rng.dirichlet(np.ones(20), (2, 20)).reshape(2, *SIDES, *SIDES)
    maps = rng.normal(size=(2, 6))
    formed = np.einsum("hijkl,hm->ijklm", attention, maps)[1:3, 1:4]
    nearest = np.zeros_like(formed)
    for down in (-1, 0, 1):
        for across in (-1, 0, 1):
            pairs = [(i, j, 1 + i + down, 1 + j + across) for i in range(2) for j in range(3)]
            mean = np.mean([formed[pair] for pair in pairs], axis=0)
            for pair in pairs:
                nearest[pair] = mean
    expected = np.linalg.norm(formed - nearest) / np.linalg.norm(formed)
    distance = convolution_distance(attention, maps @ maps.T, 3, queries="inside")
    # 6·20·6 products in each sum, as in `check`; no cancellation in a root of a sum of squares
    assert_within(distance.relative, float(expected), 8 * gamma(2000, float))
    assert_within(distance.fraction, 1 - float(expected) ** 2, 24 * gamma(2000, float))


def test_no_heads_are_a_convolution() -> None:
    distance = convolution_distance(np.zeros((0, *SIDES, *SIDES)), np.zeros((0, 0)), 3)
    assert (distance.relative, distance.fraction, distance.heads.size) == (0, 1, 0)


def test_a_kernel_larger_than_the_image_is_refused() -> None:
    attention, gram = parts(trained(1, 0))
    with pytest.raises(ValueError, match=r"no pair that tap .* take a smaller kernel"):
        convolution_distance(attention, gram, 9)
    with pytest.raises(ValueError, match=r"no pair that tap .* take a smaller kernel"):
        convolution_distance(attention, gram, 5, queries="inside")


@pytest.mark.usefixtures("unchecked")
def test_shapes_that_do_not_fit_are_refused() -> None:
    attention, gram = parts(trained(2, 0))
    for args in ((attention[:1], gram), (attention[..., :3], gram), (attention[0], gram)):
        with pytest.raises(ValueError, match="but expected"):
            convolution_distance(*args, 3)


def test_inside_is_where_all_taps_are():
    """A kernel reaches over (K - 1)·d tokens, half of them ahead; an even one d more ahead."""
    assert [each.tolist() for each in inside_queries((3, 4), (3, 2))] == [[1], [0, 1, 2]]
    queries = inside_queries((7, 5), (3, 2), (3, 2))
    assert [each.tolist() for each in queries] == [[3], [0, 1, 2]]
