"""Planted errors for S.group and S.price."""

import numpy as np
from proofs.plants.changes import one_more, scaled, turned_kernel
from proofs.plants.sharpened_kernel import no_common_head, one_head_fewer


def as_if_free(original):
    """Every orbit has as many taps as the group has elements."""
    return lambda size, group: [(d, max(m, 1)) for d, m in original(size, group)]


def one_group_for_both(original):
    return lambda size, **options: original(size, **{**options, "group": "p4"})


def in_the_same_place(original):
    """The copies do not change places."""

    def changed(outputs, order, mirror):
        return np.flip(outputs, 2) if mirror else np.rot90(outputs, axes=(1, 2))

    return changed


def unbalanced(original):
    """The second head's map has the wrong sign."""

    def changed(*args):
        weights, maps = original(*args)
        return weights, abs(maps)

    return changed


def without_neighbours(original):
    def changed(*args):
        weights, maps = original(*args)
        return weights, maps / 2

    return changed


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
