"""Planted errors for S.linear and S.continuation."""

import numpy as np
from proofs.plants.changes import always, given, scaled, then

# The register adds new tokens to old ones.
never_cleared = then(
    lambda parts: (0 * parts[0] + np.eye(parts[0].shape[1], dtype=int), *parts[1:])
)
without_content = given(lambda parts, slopes, tokens: (parts, [0 * s for s in slopes], tokens))
one_head_twice = then(lambda rows: [[row[0], *row[:-1]] for row in rows])
twice_the_error = then(lambda result: (2 * result[0], result[1]))
sharper = given(lambda period, amplitude: (period, amplitude + 1e-5))


@then
def nothing_dropped(parts):
    """The state goes round in place of out."""
    step, write, read = parts
    return [[*row[:-1], row[-1] + 1] for row in step], write, read


@then
def early_rows_empty(parts):
    """The first outputs read nothing."""
    phi, psi = parts
    phi[0] = 0
    return phi, psi


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
