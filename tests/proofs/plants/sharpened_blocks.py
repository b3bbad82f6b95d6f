"""Planted errors for S.blocks and S.gqa."""

import numpy as np
from proofs.plants.changes import one_more, scaled


def no_residual_head(original):
    """The residual connection is not counted."""
    return lambda heads, residual=True: original(heads, False)


def not_normalised(original):
    """The rows of attention do not sum to one."""
    return original._replace(inverse=np.ones_like)


def positions_left_out(original):
    """The network adds no positions."""

    def changed(*args):
        apply, parameters = original(*args)
        return lambda image, positions: apply(image, 0 * positions), parameters

    return changed


def first_token_shifted(original):
    """One token is not like the others."""

    def changed(*args):
        apply, parameters = original(*args)
        return lambda image, positions: apply(image, positions.at[0, 0].add(1)), parameters

    return changed


def a_value_map_each(original):
    """Nothing is shared."""
    return lambda rng, groups, heads, width: original(rng, groups * heads, 1, width)


def one_group_more(original):
    return lambda *args, **kwargs: original(*args, **{**kwargs, "kv_groups": 13})


def no_pseudoinverse(original):
    return lambda numerator, denominator: original(numerator, denominator + 1)


def groups_swapped(original):
    """Groups read the numbers of one another."""

    def changed(*args):
        values, outputs = original(*args)
        return values, outputs[::-1]

    return changed


PLANTS = [
    ("blocks", "exact ranks", "bound", no_residual_head),
    ("blocks", "exact ranks", "bound", one_more),
    ("blocks", "exact ranks", "MODULAR", not_normalised),
    ("blocks", "least numbers of blocks", "count_blocks", one_more),
    ("blocks", "Flax transformers", "bound", no_residual_head),
    ("blocks", "Flax transformers", "bound", one_more),
    ("blocks", "Flax transformers", "flax_network", first_token_shifted),
    ("blocks", "positions in the tokens", "flax_network", positions_left_out),
    ("gqa", "ranks in groups", "grouped_maps", a_value_map_each),
    ("gqa", "twelve groups", "count_heads", one_group_more),
    ("gqa", "one value map", "Fraction", no_pseudoinverse),
    ("gqa", "Flax layers on images", "in_groups", groups_swapped),
    ("gqa", "too few groups", "least_eigenvalue", scaled(10**4)),
]
