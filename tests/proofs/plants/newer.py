"""Planted errors for the claims about newer papers."""

import numpy as np
from proofs.plants.changes import always, replaced_by, scaled

UNSATURATED = "ledger.evidence.unsaturated_layers"


def whole_centers(original):
    """Half a step aside for even kernels: at integers, where one key is nearest."""
    return lambda heads: [
        tuple(c + (c.denominator - 1) * c for c in center) for center in original(heads)
    ]


def nothing_taken_back(original):
    def changed(maps, share):
        *blocks, uniform = original(maps, share)
        return [*blocks, 0 * uniform]

    return changed


def next_head(original):
    return lambda *given: np.roll(original(*given), 1, axis=0)


PLANTS = [
    ("gpsa", "positional rows", "quadratic_total_variation_bound", scaled(0.999)),
    ("gpsa", "positional rows", "nearest_key", always(0)),
    ("gpsa", "gated rows", "gate", scaled(1.01)),
    ("gpsa", "one head more", "share_taken_back", nothing_taken_back),
    ("gpsa", "even kernels", "released_centers", whole_centers),
    ("gpsa", "values as printed", "value_slices", next_head),
    ("gpsa", "on the bare grid", f"{UNSATURATED}.PADDINGS", replaced_by({"quadratic": "mean"})),
]
