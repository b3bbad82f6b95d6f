from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_equal
from sac.random_parameters import apply, apply_multiscale, integers, one_hot_tables, sac, scores_of

from convattn.sac import (
    EvenBias,
    MultiscaleParameters,
    as_single_scale,
    initial_multiscale,
)

IMAGES = integers(9, 2, 4, 6, 3)


def three_scales(**options):
    table = one_hot_tables((0, 0), (0, 0), size=(1, 1))
    scales = tuple(
        replace(sac(10 * i, size, ordinary=i > 0, **options), position=table)
        for i, size in enumerate([(1, 1), (2, 1), (1, 3)])
    )
    return MultiscaleParameters(scales, integers(99, 12, 4))


def test_scales_are_concatenated_and_reduced() -> None:
    given = three_scales(content=False)
    parts = [apply(scale, IMAGES) for scale in given.scales]
    joined = np.concatenate([np.asarray(part) for part in parts], axis=-1)
    expected = joined @ np.asarray(given.merge)
    assert_equal(apply_multiscale(given, IMAGES), expected)


def test_it_is_one_sac_of_the_largest_size() -> None:
    """One-hot attention, small integers: both are the same integers."""
    given = three_scales(content=False)
    given = replace(
        given, scales=(replace(given.scales[0], bias=integers(5, 4)), *given.scales[1:])
    )
    single = as_single_scale(given)
    assert single.kernel_size == (2, 3)
    assert single.heads == 6
    expected = apply_multiscale(given, IMAGES)
    assert_equal(apply(single, IMAGES), expected)


def test_the_one_sac_has_the_scales_scores() -> None:
    scales = tuple(
        replace(sac(10 * i, size), position=EvenBias(integers(i, 2, *size)))
        for i, size in enumerate([(1, 1), (2, 1), (1, 3)])
    )
    single = as_single_scale(MultiscaleParameters(scales, integers(99, 12, 4)))
    expected = np.concatenate([scores_of(scale, IMAGES)[0] for scale in scales], axis=1)
    assert_equal(scores_of(single, IMAGES)[0], expected)


def test_strides_that_differ_are_refused() -> None:
    given = three_scales()
    other = replace(given.scales[0], stride=(2, 2))
    with pytest.raises(ValueError, match="all of one stride"):
        apply_multiscale(replace(given, scales=(other, *given.scales[1:])), IMAGES)
    with pytest.raises(ValueError, match="the 0 scales have"):
        apply_multiscale(replace(given, scales=()), IMAGES)
    with pytest.raises(ValueError, match="kernel_sizes is empty"):
        initial_multiscale(jax.random.key(0), (), 1, 1, heads=1, key_features=1, distances=(1, 1))


def test_a_merge_of_other_channels_is_refused() -> None:
    with pytest.raises(ValueError, match="should be the 12 channels"):
        apply_multiscale(replace(three_scales(), merge=integers(0, 11, 4)), IMAGES)


WRONG = [
    ({"dilation": (2, 1)}, "differ in stride, dilation"),
    ({"position": None}, "some scales have a position"),
    ({"query": None, "key": None}, "some scales have a query"),
    ({"position": EvenBias(jnp.ones((1, 1, 1)), 0.5)}, "scales with leaks"),
    ({"value": integers(0, 2, 1, 1, 3, 6)}, "features a head"),
]


@pytest.mark.parametrize(("change", "message"), WRONG)
def test_scales_that_cannot_be_joined_are_refused(change, message) -> None:
    given = three_scales()
    with pytest.raises(ValueError, match=message):
        as_single_scale(
            replace(given, scales=(replace(given.scales[0], **change), *given.scales[1:]))
        )
