"""Each condition on how grids lie has cases that fail; whole certificates are in the corpora."""

import pytest

from convattn_check.layout import require_layout
from convattn_check.polynomial import constant
from convattn_check.reject import Reject


def grid(sides, shifts, stride=1):
    return {"border": "zero", "grid": sides, "shifts": shifts, "stride": stride}


ROWS = [[0, -1], [0, 1]]  # filters along the rows
LINE = {"J": grid([9], [[-1], [0], [1]]), "S": grid([4], [[-1], [0], [1]])}


def selected(*nodes):
    return {(row, node): constant(1) for row, node in enumerate(nodes)}


def layout(condition, grids, **images):
    require_layout([(condition, *grids, *images)], grids, images)


def holds(condition, grids, **images):
    """Whether it does; that an image is no rectangle is another refusal."""
    refused = None
    try:
        layout(condition, grids, **images)
    except Reject as reject:
        refused = reject
    assert refused is None or refused.code == "layout"
    assert refused is None or refused.reason.endswith(f", expected {condition}")
    return refused is None


FIRST, BEHIND, GAP = (0, 1, 2, 3), (4, 5, 6, 7), (5, 6, 7, 8)
BACK = {"J": grid([8], [[-2], [0]]), "S": grid([3], [[-2], [0]])}
BESIDE = {"J": grid([2, 4], ROWS), "S": grid([2, 2], ROWS)}
ABOVE = {"J": grid([4, 2], ROWS), "S": grid([2, 2], ROWS)}
CORNERS = {"J": grid([2, 2], ROWS), "S": grid([1, 1], ROWS)}


@pytest.mark.parametrize(
    ("condition", "grids", "left", "right", "expected"),
    [
        ("adjacent", LINE, FIRST, BEHIND, True),
        ("adjacent", LINE, BEHIND, FIRST, True),
        ("adjacent", LINE, (1, 2, 3, 4), GAP, True),
        ("adjacent", LINE, FIRST, GAP, False),
        ("adjacent", LINE, FIRST, (2, 3, 4, 5), False),
        ("apart", LINE, FIRST, GAP, True),
        ("apart", LINE, FIRST, BEHIND, False),
        ("apart", LINE, FIRST, FIRST, False),
        ("apart", BACK, (0, 1, 2), (5, 6, 7), True),
        ("apart", BACK, (0, 1, 2), (4, 5, 6), False),
        ("adjacent", BESIDE, (0, 1, 4, 5), (2, 3, 6, 7), True),
        ("adjacent", ABOVE, FIRST, BEHIND, False),  # filters along the rows
        ("apart", CORNERS, (0,), (3,), False),
        ("apart", LINE | {"S": grid([4], [[0]])}, FIRST, GAP, False),
        ("apart", LINE | {"S": grid([4], [[-2], [1]])}, FIRST, GAP, False),
    ],
)
def test_two_images_in_a_grid(condition, grids, left, right, expected):
    assert holds(condition, grids, l=selected(*left), r=selected(*right)) == expected


@pytest.mark.parametrize(
    ("grids", "image"),
    [
        (LINE, (3, 2, 1, 0)),
        (LINE, (0, 1, 2, 4)),
        (LINE, ()),
        ({"J": grid([2, 4], ROWS), "S": grid([1, 2], ROWS)}, (3, 4)),  # the end of one row, and on
        ({"J": grid([2, 2], ROWS), "S": grid([2, 1], ROWS)}, (0, 1)),
    ],
)
def test_an_image_that_is_no_rectangle(grids, image):
    with pytest.raises(Reject, match="is no rectangle of the grid") as caught:
        layout("adjacent", grids, l=selected(*image), r=selected(*image))
    assert caught.value.code == "layout"


def test_an_image_selects_each_pixel_once():
    images = {"l": selected(0, 1, 2, 3), "r": selected(4, 5, 6, 7)}
    images["l"][0, 0] = constant(2)
    with pytest.raises(Reject, match="is no rectangle of the grid"):
        layout("adjacent", LINE, **images)


PLAIN, POINT = grid([4], [[0], [1]]), grid([4], [[0]], 2)
SAMPLED = {"R": POINT, "E": PLAIN, "G": grid([4], [[0], [1]], 2)}
PRODUCT = {"U": PLAIN, "V": grid([2], [[0]]), "E": grid([4, 2], [[0, 0], [1, 0]])}
PLANE = {
    "R": grid([4, 2], [[0, 0]], 2),
    "E": grid([4, 2], [[0, 1]]),
    "G": grid([4, 2], [[0, 1]], 2),
}


@pytest.mark.parametrize(
    ("condition", "grids", "expected"),
    [
        ("one grid", {"A": PLAIN, "B": POINT}, True),
        ("one grid", {"A": PLAIN, "B": grid([2], [[0]])}, False),
        ("one grid", {"A": PLAIN, "B": grid([5], [[0]])}, False),
        ("alike", {"A": PLAIN, "B": PLAIN}, True),
        ("alike", {"A": PLAIN, "B": grid([5], [[0], [1]])}, False),
        ("alike", {"A": PLAIN, "B": grid([4], [[1], [0]])}, False),
        ("alike", {"A": PLAIN, "B": grid([4], [[0], [1]], 2)}, False),
        ("product", PRODUCT, True),
        ("product", PRODUCT | {"E": grid([8], [[0], [1]])}, False),
        ("product", PRODUCT | {"E": grid([4], [[0], [1]])}, False),
        ("product", PRODUCT | {"E": grid([4, 2], [[0, 0], [1, 0]], 2)}, False),
        ("sampled", SAMPLED, True),
        ("sampled", PLANE, True),
        ("sampled", SAMPLED | {"R": grid([5], [[0]], 2)}, False),
        ("sampled", SAMPLED | {"R": grid([4], [[0]], 1)}, False),
        ("sampled", SAMPLED | {"R": grid([4], [[0]], 3)}, False),
        ("sampled", SAMPLED | {"R": grid([4], [[-1]], 2)}, False),
        ("sampled", SAMPLED | {"R": grid([4], [[1]], 2)}, False),
        ("sampled", SAMPLED | {"E": grid([4], [[0], [1]], 2)}, False),
        ("sampled", SAMPLED | {"E": grid([4], [[0], [2]])}, False),
        ("sampled", SAMPLED | {"E": grid([4], [[0], [-1]])}, False),
        ("centred", {"F": grid([4], [[1], [-1], [0]])}, True),
        ("centred", {"F": grid([4, 4], [[0, -1], [0, 0], [0, 1]])}, True),
        ("centred", {"F": grid([4], [[-1], [1]])}, False),
        ("centred", {"F": grid([4], [[-2], [-1], [0], [1]])}, False),
        ("centred", {"F": grid([4, 4], [[-1, 0], [0, 0], [1, 1]])}, False),
    ],
)
def test_conditions_on_grids(condition, grids, expected):
    assert holds(condition, grids) == expected


@pytest.mark.parametrize(
    ("read", "expected"), [([(0, 1), (1, 2)], True), ([(1, 1), (1, 2)], False), ([], False)]
)
def test_every_shift_reads_a_node(read, expected):
    """By the entries of the last tensor: its first index counts the shifts."""
    entries = {(shift, node, node): constant(1) for shift, node in read}
    assert holds("read", {"E": PLAIN}, T=entries) == expected
