"""A converted layer's result against the convolution's: equal where it can be, else bounded."""

import numpy as np
from comparison import assert_dtype, assert_equal, assert_within
from constructions.exact_form_bounds import exact_form_bound
from constructions.lagrange import amplification


def bound_of(row, case, heads, uniform_weight):
    count = row.geometry.heads
    kappa = None
    if row.encoding == "scalar":
        kappa = float(amplification(range(2, count + 2), row.exact))
    return exact_form_bound(
        case,
        row.geometry,
        heads,
        encoding=row.encoding,
        uniform_weight=uniform_weight,
        amplification=kappa,
        head_dim=row.head_dim,
        bias=row.bias,
    )


def compare(row, case, output, expected, heads, uniform_weight=0.5):
    """Equal where attention is one-hot and integers fit; otherwise within `exact_form_bounds`."""
    assert_dtype(output, row.dtype)
    if row.one_hot:
        assert_equal(output, expected)
    else:
        bound = bound_of(row, case, int(heads), uniform_weight)
        assert_within(output, expected, np.broadcast_to(bound, expected.shape))
