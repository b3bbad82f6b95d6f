"""Planted errors for S.blocks and S.gqa."""

import numpy as np
from proofs.plants.changes import given, one_more, scaled, then, with_options

# The residual connection is not counted.
no_residual_head = given(lambda heads, residual=True: (heads, False))
# Nothing is shared.
a_value_map_each = given(lambda rng, groups, heads, width: (rng, groups * heads, 1, width))
one_group_more = with_options(kv_groups=13)
no_pseudoinverse = given(lambda numerator, denominator: (numerator, denominator + 1))
# Groups read the numbers of one another.
groups_swapped = then(lambda maps: (maps[0], maps[1][::-1]))


def not_normalised(original):
    """The rows of attention do not sum to one."""
    return original._replace(inverse=np.ones_like)


def with_positions(change):
    """Of a network, made with its parameters: it adds other positions than those it is given."""
    changed = given(lambda image, positions: (image, change(positions)))
    return then(lambda made: (changed(made[0]), made[1]))


positions_left_out = with_positions(lambda positions: 0 * positions)
first_token_shifted = with_positions(lambda positions: positions.at[0, 0].add(1))

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
