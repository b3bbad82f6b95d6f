from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal
from sac.random_parameters import (
    apply,
    apply_cross,
    bank_of,
    integers,
    one_hot_tables,
    sac,
    scores_of,
)

from convattn.sac import (
    EvenBias,
    MultiscaleParameters,
    cosine_similarity,
    seam_reach,
    side_by_side,
    with_segment,
)
from convattn_ledger.evidence.exact_convolution import exact_convolution

FIRST, SECOND = integers(1, 2, 2, 4, 3), integers(2, 2, 2, 4, 3)


@pytest.mark.slow
@pytest.mark.parametrize(("width", "dilation"), [(1, 1), (2, 1), (3, 2), (4, 1)])
def test_a_gap_of_the_reach_and_no_less_keeps_the_images_apart(width, dilation) -> None:
    kernel = 1 + np.abs(np.asarray(integers(3, 1, width, 3, 2), int))  # no tap is zero
    first, second = (1 + np.abs(np.asarray(each, int)) for each in (FIRST, SECOND))  # no pixel is
    separate = [exact_convolution(each, kernel, dilation=dilation) for each in (first, second)]
    reach = seam_reach(replace(sac(0, (1, width)), dilation=(1, dilation)))
    assert reach == -(-dilation * (width - 1) // 2)
    for gap in range(reach + 2):
        joined, _ = side_by_side(jnp.asarray(first), jnp.asarray(second), gap)
        together = exact_convolution(np.asarray(joined), kernel, dilation=dilation)
        assert bool((together[:, :, :4] == separate[0]).all()) == (gap >= reach)
        alone = dilation * (width - 1) // 2
        assert bool((together[:, :, 4 + gap :] == separate[1]).all()) == (gap >= alone)


def test_every_patch_attends_to_the_patches_of_both_images_only() -> None:
    """Uniform attention over 16 patches, whatever the gap."""
    parameters = replace(sac(0, (1, 3), content=False), output=None)
    for gap in (1, 4):
        parts = apply_cross(parameters, FIRST, SECOND, gap=gap)
        values = [
            np.asarray(
                bank_of(each, parameters.value, stride=(1, 1), dilation=(1, 1)).sum(axis=3)
            ).mean(axis=(1, 2))
            for each in (FIRST, SECOND)
        ]
        expected = np.broadcast_to(((values[0] + values[1]) / 2)[:, None, None], (2, 2, 4, 5))
        for part in parts:
            assert_equal(part, expected)


def test_x_can_read_z() -> None:
    """A head whose bias is M at the distance (0, width + gap) copies each image onto the other."""
    table = one_hot_tables((0, 5), (0, 5), size=(1, 6))
    parameters = replace(sac(0, (1, 2), content=False), position=table, output=None)
    assert seam_reach(parameters) == 1
    parts = apply_cross(parameters, FIRST, SECOND)
    for part, other in zip(parts, (SECOND, FIRST), strict=True):
        values = bank_of(other, parameters.value, stride=(1, 1), dilation=(1, 1))
        assert_equal(part, values.sum(axis=3))


@pytest.mark.slow
def test_without_a_gap_it_is_sac_of_the_joined_image() -> None:
    parameters = replace(sac(0, (2, 3)), position=EvenBias(integers(4, 2, 2, 8)))
    joined = apply(parameters, jnp.concatenate([FIRST, SECOND], axis=2))
    parts = apply_cross(parameters, FIRST, SECOND, gap=0)
    for part, expected in zip(parts, (joined[:, :, :4], joined[:, :, 4:]), strict=True):
        assert_equal(part, expected)


def test_multiscale_takes_the_widest_reach() -> None:
    scales = (sac(0, (1, 1), content=False), sac(1, (1, 4), content=False))
    parameters = MultiscaleParameters(scales, integers(5, 8, 4))
    assert seam_reach(parameters) == 2
    first, second = apply_cross(parameters, FIRST, SECOND)
    assert first.shape == second.shape == (2, 2, 4, 4)


def test_strides_find_both_images() -> None:
    table = one_hot_tables((0, 0), (0, 0), size=(1, 1))
    parameters = replace(sac(0, (1, 2), content=False), position=table, output=None)
    parameters = replace(parameters, stride=(1, 3), key_stride=(1, 3))
    parts = apply_cross(parameters, FIRST, SECOND)  # 4 + 1 columns, so 4 + 2
    for part, each in zip(parts, (FIRST, SECOND), strict=True):
        values = bank_of(each, parameters.value, stride=(1, 3), dilation=(1, 1))
        assert_equal(part, values.sum(axis=3))


@pytest.mark.slow
def test_segments() -> None:
    segment, one = integers(6, 2, 4, 3), integers(7, 3)
    first, second = FIRST + segment[None], SECOND + one[None, None, None]
    assert_equal(with_segment(FIRST, segment), first)
    joined = with_segment(FIRST, one, "concatenate")
    assert_equal(joined[..., :3], FIRST)
    assert_equal(joined[..., 3:], np.broadcast_to(one, FIRST.shape))
    parameters = sac(0, (1, 2))
    parts = apply_cross(parameters, FIRST, SECOND, segments=(segment, one))
    expected = apply_cross(parameters, first, second)
    for part, each in zip(parts, expected, strict=True):
        assert_equal(part, each)


def test_the_gap_is_zero_though_segments_are_not() -> None:
    parameters = sac(0, (1, 3))
    shifted = with_segment(FIRST, integers(7, 3)), with_segment(SECOND, integers(8, 3))
    joined, mask = side_by_side(*shifted, gap=2)
    assert not np.asarray(joined)[:, :, 4:6].any()
    assert np.asarray(mask).sum() == 16
    scores, mask_of_pairs = scores_of(parameters, joined, mask)
    assert scores.shape[-1] == 20
    assert_equal(mask_of_pairs, np.broadcast_to(np.asarray(mask).ravel(), (20, 20)))


@pytest.mark.slow
def test_the_cosine_of_nothing_is_zero_with_a_finite_gradient() -> None:
    one = jnp.array([[[3.0, 4.0]]])
    assert_equal(cosine_similarity(one, 0 * one), [0.0])
    gradient = jax.grad(lambda x: cosine_similarity(x, one)[0])(0 * one)
    assert np.isfinite(np.asarray(gradient)).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("dtype", "scale"), [("float32", 1e-12), ("float32", 1e12), ("float16", 200)]
)
def test_the_cosine_has_no_scale(dtype, scale) -> None:
    """(3, 4) and (4, 3)·2: 24/25; itself: 1, to the rounding of twenty operations."""
    one = scale * jnp.array([[[3, 4]]], dtype)
    error = 20 * float(jnp.finfo(dtype).eps)
    assert abs(float(cosine_similarity(one, one)[0]) - 1) < error
    assert abs(float(cosine_similarity(one, 2 * one[..., ::-1])[0]) - 24 / 25) < error
