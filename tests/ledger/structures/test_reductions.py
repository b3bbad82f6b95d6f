"""Dtypes of grouped, separable and controlled convolutions; claim A19.reductions has the rest."""

import jax.numpy as jnp
import numpy as np
import pytest
from comparison import assert_dtype, assert_equal
from ledger.structures.basis_cases import case

from convattn_ledger.structures import (
    controlled_convolution,
    grouped_convolution,
    separable_convolution,
)

FORMS = {  # and the shapes of the parameters for four matrices and 512 channels to two
    "grouped": (grouped_convolution, [(4, 2, 256, 1)]),
    "separable": (separable_convolution, [(4, 512), (512, 2)]),
    "controlled": (controlled_convolution, [(5, 4), (5, 512, 2)]),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.quick(1)
def test_half_types_are_summed_in_float32(form) -> None:
    basis, _ = case("sequence")
    apply, shapes = FORMS[form]
    halves, floats = ([jnp.ones(s, dtype) for s in shapes] for dtype in ("bfloat16", "float32"))
    result = apply(jnp.ones((1, 6, 512), jnp.bfloat16), basis, *halves)
    assert_dtype(result, jnp.bfloat16)
    assert_equal(result, apply(np.ones((1, 6, 512), "float32"), basis, *floats))
