"""Planted errors for S.group and S.price."""

import numpy as np
from proofs.plants.changes import one_more, scaled, then, turned_kernel, with_options
from proofs.plants.sharpened_kernel import no_common_head, one_head_fewer

# Every orbit has as many taps as the group has elements.
as_if_free = then(lambda orbits: [(d, max(m, 1)) for d, m in orbits])
one_group_for_both = with_options(group="p4")
# The second head's map has the wrong sign, or the maps are those without neighbours.
unbalanced = then(lambda result: (result[0], abs(result[1])))
without_neighbours = then(lambda result: (result[0], result[1] / 2))


def in_the_same_place(original):
    """The copies do not change places."""
    return lambda outputs, order, mirror: (
        np.flip(outputs, 2) if mirror else np.rot90(outputs, axes=(1, 2))
    )


def no_epsilon(original):
    """The maps of the limit form are those of another ε."""
    return lambda kernel, *args, **kwargs: original(
        kernel, *args, **({**kwargs, "epsilon": 0.5} if kwargs.get("epsilon") else kwargs)
    )


PLANTS = [
    ("group", "ranks", "bounds.lifted_kernel.multiplicities", as_if_free),
    ("group", "ranks", "lifted_rank", one_more),
    ("group", "limits", "bounds.kernel_heads.count_heads_of_kernel", one_head_fewer),
    ("group", "limits", "count_heads", one_group_for_both),
    ("group", "heads with shared maps", "mixture_heads", no_common_head),
    ("group", "p4m, 3 × 3, 1 filters: 8 heads", "conv_to_attention", turned_kernel),
    ("group", "p4m, 5 × 5, 2 filters: 16 heads", "moved_outputs", in_the_same_place),
    ("group", "p4, 5 × 5, 3 filters: 13 heads", "moved_outputs", in_the_same_place),
    ("price", "layers in fractions", "floor_of_largest", scaled(2)),
    ("price", "layers in fractions", "two_heads", unbalanced),
    ("price", "other kernels", "kappa", scaled(0.01)),
    ("price", "error times maps", "squared_error", scaled(2)),
    ("price", "error times maps", "two_heads", without_neighbours),
    ("price", "two heads in float32", "given_kernel_layer", turned_kernel),
    ("price", "two heads in float32", "mixture_error_bound", scaled(0)),
    ("price", "narrow heads in float32", "conv_to_attention", no_epsilon),
]
