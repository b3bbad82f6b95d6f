"""Planted errors for the claims of Andreoli on grids and graphs."""

import numpy as np
from proofs.plants.changes import (
    always,
    first,
    given,
    replaced_by,
    then,
    turned_around,
    with_options,
)

from convattn_ledger import structures

# Changes.

other_sign = given(lambda grid, shift: (grid, [-d for d in shift]))
without_dilation = given(lambda grid, window, stride=None, dilation=1: (grid, window, stride))
transposed = first(lambda adjacency: np.asarray(adjacency).T)
one_way = first(np.triu)
goes_round = with_options(torus=True)
turned_back = then(lambda read: read._replace(kernel=np.flip(read.kernel, 0)))
eigenvalue_of_one = with_options(largest_eigenvalue=1.0)
the_laplacian = replaced_by(structures.laplacian_basis)
the_gcn = replaced_by(structures.gcn_basis)


def counted_from_zero(original):
    def changed(sizes, dilation=1, offset=0):
        return tuple(
            tuple(
                int(d - s)
                for d, s in zip(shift, np.broadcast_to(dilation, len(shift)), strict=True)
            )
            for shift in original(sizes, dilation, offset)
        )

    return changed


def anything_is_a_kernel(original):
    def changed(basis, theta):
        try:
            return original(basis, theta)
        except ValueError:
            return None

    return changed


def the_other_boundary(original):
    return lambda grid, *, torus=False: original(grid, torus=not torus)


@given
def backwards(relations, sorts):
    return relations, [".".join(sort.split(".")[::-1]) for sort in sorts]


S = "ledger.structures"
M = f"{S}.shift_matrices.shift_matrix"
PLANTS = [
    ("grid", "cuboids are kernels", f"{S}.cuboid_shifts", counted_from_zero),
    ("grid", "cuboids are kernels", f"{S}.cuboid_shifts", turned_around),
    ("grid", "the cuboid starts at ε + δ", f"{S}.cuboid_shifts", counted_from_zero),
    ("grid", "shifts are their matrices", M, other_sign),
    ("grid", "shifts are their matrices", M, goes_round),
    ("grid", "δ is dilation", f"{S}.kernel_to_structure", with_options(dilation=1)),
    ("grid", "δ is dilation", f"{S}.kernel_to_structure", with_options(stride=2)),
    ("grid", "stride leaves the grid", f"{S}.kernel_to_structure", with_options(dilation=1)),
    ("grid", "stride leaves the grid", f"{S}.kernel_to_structure", with_options(padding="VALID")),
    ("grid", "average pooling", f"{S}.pooling_basis", without_dilation),
    ("grid", "average pooling", f"{S}.window_basis", without_dilation),
    ("grid", "kernels there and back", f"{S}.structure_to_kernel", turned_back),
    ("grid", "kernels there and back", f"{S}.structure_to_kernel", anything_is_a_kernel),
    ("equivariance", "n - m alone, and the span", M, other_sign),
    ("equivariance", "n - m alone, and the span", "in_span", always(True)),
    ("equivariance", "equipollent pairs", M, other_sign),
    ("equivariance", "commutants of bare grids", "unit_matrices", the_other_boundary),
    ("equivariance", "commutants of bare grids", "LINES", replaced_by(((1, 2),))),
    ("equivariance", "commutants of tori", "unit_matrices", the_other_boundary),
    ("equivariance", "matrix units are products", M, goes_round),
    ("equivariance", "composites leave the class", M, goes_round),
    ("equivariance", "composites leave the class", "in_span", always(True)),
    ("equivariance", "away from the border", M, goes_round),
    ("equivariance", "locality", f"{S}.cuboid_shifts", counted_from_zero),
    ("equivariance", "locality", M, goes_round),
    ("graph", "GCN is not the Laplacian", f"{S}.gcn_basis", the_laplacian),
    ("graph", "GCN is not the Laplacian", f"{S}.laplacian_basis", the_gcn),
    ("graph", "scipy's Laplacian", f"{S}.laplacian_basis", the_gcn),
    ("graph", "Chebyshev polynomials", f"{S}.chebyshev_basis", eigenvalue_of_one),
    ("graph", "Chebyshev polynomials", "chebyshev_coefficients", turned_around),
    ("graph", "one class of polynomials", "chebyshev_coefficients", always([1])),
    ("graph", "powers count walks", f"{S}.power_basis", transposed),
    ("graph", "sorts are products", f"{S}.walk_basis", backwards),
    ("graph", "size of a grid convolution", "bounds.flattened_kernel.exact_rank", always(1)),
    ("graph", "size of a grid convolution", "spanned", always(1)),
    ("graph", "reflections forbid shifts", f"{S}.power_basis", one_way),
    ("graph", "reflections forbid shifts", M, goes_round),
]
