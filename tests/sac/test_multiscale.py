from dataclasses import replace

import numpy as np
import pytest
from comparison import assert_equal
from sac.random_parameters import apply, apply_multiscale, integers, one_hot_tables, sac, scores_of

from convattn.sac import EvenBias, MultiscaleParameters, as_single_scale

IMAGES = integers(9, 2, 4, 6, 3)
SIZES = [(1, 1), (2, 1), (1, 3)]


@pytest.mark.slow
def test_scales_are_concatenated_reduced_and_one_sac_of_the_largest_size() -> None:
    """One-hot attention, small integers: all three are the same integers."""
    table = one_hot_tables((0, 0), (0, 0), size=(1, 1))
    first, *others = (
        replace(sac(10 * i, size, ordinary=i > 0, content=False), position=table)
        for i, size in enumerate(SIZES)
    )
    parameters = MultiscaleParameters(
        (replace(first, bias=integers(5, 4)), *others), integers(99, 12, 4)
    )
    parts = [np.asarray(apply(scale, IMAGES)) for scale in parameters.scales]
    expected = np.concatenate(parts, axis=-1) @ np.asarray(parameters.merge)
    assert_equal(apply_multiscale(parameters, IMAGES), expected)
    single = as_single_scale(parameters)
    assert (single.kernel_size, single.heads) == ((2, 3), 6)
    assert_equal(apply(single, IMAGES), expected)


@pytest.mark.quick(1)
@pytest.mark.parametrize("tables", [1, 2])
def test_the_one_sac_has_the_scales_scores(tables) -> None:
    """Of two heads a scale, also where they share a table."""
    scales = tuple(
        replace(sac(10 * i, size), position=EvenBias(integers(i, tables, *size)))
        for i, size in enumerate(SIZES)
    )
    single = as_single_scale(MultiscaleParameters(scales, integers(99, 12, 4)))
    expected = np.concatenate([scores_of(scale, IMAGES)[0] for scale in scales], axis=1)
    assert_equal(scores_of(single, IMAGES)[0], expected)
