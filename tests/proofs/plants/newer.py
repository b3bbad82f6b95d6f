"""Planted errors for N.rope."""

from proofs.plants.changes import replaced_by, scaled


def one_pair_fewer(original):
    return lambda pairs, *given: original(pairs, *given)[1:]


def slower(original):
    """Each pair turns half as far per token."""
    return lambda *given: [rotation / 2 for rotation in original(*given)]


def turned_further(original):
    """Each frequency is a third instead of a half of the one before."""
    return lambda *given, **named: original(*given, **named) * 2 / 3


PLANTS = [
    ("rope", "the norm needed", "angles", one_pair_fewer),
    ("rope", "the norm needed", "loss", scaled(20)),
    ("rope", "the norm needed", "ONCE_AROUND", replaced_by(44)),
    ("rope", "dyadic angles", "dyadic_angles", slower),
    ("rope", "dyadic angles", "dyadic_angles", one_pair_fewer),
    ("rope", "the price on images", "angles", slower),
    ("rope", "the price on images", "dyadic_angles", one_pair_fewer),
    ("rope", "distance to hard attention", "encodings.rotary.axial_turns", turned_further),
    ("rope", "the border of a bare grid", "loss", scaled(-1)),
]
