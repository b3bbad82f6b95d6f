"""Planted errors for S.overlap."""

from proofs.plants.changes import one_fewer, one_more, then


def not_perturbed(original):
    """U and V stay what they are, so that the base has the rank n."""

    def changed(pieces, width, t):
        saved = pieces.u1
        pieces.u1 = 0 * saved
        heads = original(pieces, width, t)
        pieces.u1 = saved
        return heads

    return changed


PLANTS = [
    ("overlap", "exact heads", "number_of_heads", one_more),
    ("overlap", "exact heads", "head_maps", not_perturbed),
    ("overlap", "exact heads", "head_maps", one_fewer),
    ("overlap", "heads of width 64", "number_of_heads", one_more),
    ("overlap", "heads of width 64", "rank_modulo", then(lambda rank: rank - 1)),
]
