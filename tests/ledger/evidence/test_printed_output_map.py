"""L21's W^O, against the library's maps and ranks, which were written apart from it."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import seeds

from convattn.bounds.flattened_kernel import flattened_kernel
from convattn.constructions.geometry import ConvolutionGeometry
from convattn.constructions.li_output_map import token_maps
from convattn_ledger.evidence.printed_output_map import (
    flattened_blocks,
    output_blocks,
    patch_offsets,
    printed_output_map,
)


@given(st.sampled_from(range(1, 16, 2)), st.integers(1, 8))
def test_offsets_are_those_of_the_library(size, patch):
    assert tuple(patch_offsets(size, patch)) == ConvolutionGeometry.of((size, size), patch).offsets


@pytest.mark.parametrize("size", [0, 2, -1])
def test_an_even_kernel_is_refused(size):
    with pytest.raises(ValueError, match="should be odd"):
        patch_offsets(size, 2)


@pytest.mark.slow
@pytest.mark.parametrize(("size", "patch"), [(1, 2), (3, 1), (3, 2), (5, 2), (7, 3)])
@given(seed=seeds())
def test_blocks_are_the_librarys(seed, size, patch):
    kernel = np.random.default_rng(seed).integers(-9, 10, (size, size, 2, 3))
    blocks = output_blocks(kernel, patch)
    geometry = ConvolutionGeometry.of((size, size), patch)
    assert np.array_equal(blocks, np.asarray(token_maps(jnp.asarray(kernel), geometry)))
    assert np.array_equal(blocks.reshape(-1, blocks.shape[2]), printed_output_map(kernel, patch))


def test_one_column_for_each_offset_with_the_librarys_rows_in_another_order():
    kernel = np.random.default_rng(0).integers(-9, 10, (5, 5, 2, 3))
    ours = flattened_blocks(output_blocks(kernel, 2))
    theirs = np.asarray(flattened_kernel(jnp.asarray(kernel), 2))
    assert ours.shape == theirs.shape == (2**4 * 6, 9)
    assert sorted(map(tuple, ours.tolist())) == sorted(map(tuple, theirs.tolist()))
    assert not np.array_equal(ours, theirs)
