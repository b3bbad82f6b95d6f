"""Planted errors for S.linear and S.continuation."""

import numpy as np
from proofs.plants.changes import always, scaled


def never_cleared(original):
    """The register adds new tokens to old ones."""

    def changed(*args):
        step, write, read = original(*args)
        return step * 0 + np.eye(step.shape[1], dtype=int), write, read

    return changed


def nothing_dropped(original):
    """The state goes round in place of out."""

    def changed(taps):
        step, write, read = original(taps)
        return [[*row[:-1], row[-1] + 1] for row in step], write, read

    return changed


def early_rows_empty(original):
    """The first outputs read nothing."""

    def changed(taps, tokens):
        phi, psi = original(taps, tokens)
        phi[0] = 0
        return phi, psi

    return changed


def without_content(original):
    return lambda parts, slopes, tokens: original(parts, [0 * slope for slope in slopes], tokens)


def one_head_twice(original):
    return lambda *args: [[row[0], *row[:-1]] for row in original(*args)]


def twice_the_error(original):
    def changed(*args):
        bound, best = original(*args)
        return 2 * bound, best

    return changed


def sharper(original):
    return lambda period, amplitude: original(period, amplitude + 1e-5)


PLANTS = [
    ("linear", "ranks of Hankel matrices", "hankel", scaled(0)),
    ("linear", "realisations", "realised", nothing_dropped),
    ("linear", "what is lost", "ring_register", never_cleared),
    ("linear", "maps to earlier outputs", "completed", early_rows_empty),
    ("linear", "at the zero image", "with_content", without_content),
    ("linear", "layers on rows of images", "ring_register", never_cleared),
    ("linear", "layers on rows of images", "completed", early_rows_empty),
    ("linear", "one state number too few", "least_distance", scaled(10)),
    ("continuation", "nothing vanishes on H keys", "exponentials", one_head_twice),
    ("continuation", "half of a tap", "least_error", twice_the_error),
    ("continuation", "two heads", "root_of_unity", always((1201, 1))),
    ("continuation", "weights of a period", "is_expressed", always(True)),
    ("continuation", "the best maps", "least_error", twice_the_error),
    ("continuation", "rows of pixels", "comb", sharper),
]
