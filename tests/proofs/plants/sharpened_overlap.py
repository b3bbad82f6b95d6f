"""Planted errors for S.overlap."""

from proofs.plants.changes import one_more


def not_perturbed(original):
    """U and V stay what they are, so that the base has the rank n."""

    def changed(pieces, width, t):
        saved = pieces.u1
        pieces.u1 = 0 * saved
        heads = original(pieces, width, t)
        pieces.u1 = saved
        return heads

    return changed


def one_map_lost(original):
    """A head is forgotten."""
    return lambda *args: original(*args)[1:]


def one_less(original):
    return lambda matrix: original(matrix) - 1


PLANTS = [
    ("overlap", "exact heads", "number_of_heads", one_more),
    ("overlap", "exact heads", "head_maps", not_perturbed),
    ("overlap", "exact heads", "head_maps", one_map_lost),
    ("overlap", "heads of width 64", "number_of_heads", one_more),
    ("overlap", "heads of width 64", "rank_modulo", one_less),
]
