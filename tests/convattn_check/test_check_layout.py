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


@pytest.mark.parametrize(
    ("condition", "left", "right", "holds"),
    [
        ("adjacent", (0, 1, 2, 3), (4, 5, 6, 7), True),
        ("adjacent", (4, 5, 6, 7), (0, 1, 2, 3), True),
        ("adjacent", (0, 1, 2, 3), (5, 6, 7, 8), False),
        ("apart", (0, 1, 2, 3), (5, 6, 7, 8), True),
        ("apart", (0, 1, 2, 3), (4, 5, 6, 7), False),
        ("apart", (0, 1, 2, 3), (0, 1, 2, 3), False),
        ("apart", (3, 2, 1, 0), (5, 6, 7, 8), False),
        ("apart", (0, 1, 2, 4), (5, 6, 7, 8), False),
    ],
)
def test_two_images_on_a_line(condition, left, right, holds):
    images = {"l": selected(*left), "r": selected(*right)}
    if holds:
        layout(condition, LINE, **images)
    else:
        with pytest.raises(Reject) as caught:
            layout(condition, LINE, **images)
        assert caught.value.code == "layout"


PLAIN, PAIR = grid([4], [[0], [1]]), grid([2], [[0]])


@pytest.mark.parametrize(
    ("condition", "grids", "images"),
    [
        ("apart", {"J": LINE["J"], "S": grid([4], [[0]])}, {}),
        ("apart", {"J": grid([4, 9], ROWS), "S": grid([4], [[0]])}, {}),
        (  # apart on both axes at once
            "apart",
            {"J": grid([2, 2], ROWS), "S": grid([1, 1], ROWS)},
            {"l": selected(0), "r": selected(3)},
        ),
        ("one grid", {"A": PLAIN, "B": PAIR}, {}),
        ("alike", {"A": PLAIN, "B": grid([4], [[1], [0]])}, {}),
        ("product", {"U": PLAIN, "V": PAIR, "E": grid([8], [[0], [1]])}, {}),
        ("product", {"U": PLAIN, "V": PAIR, "E": grid([4, 2], [[0, 0], [1, 0]], 2)}, {}),
        ("sampled", {"R": grid([4], [[0]], 2), "E": PLAIN, "G": grid([4], [[0], [1]], 3)}, {}),
        ("sampled", {"R": grid([4], [[0]], 2), "E": PLAIN, "G": grid([4], [[0]], 2)}, {}),
        ("sampled", {"R": grid([4], [[0]], 2), "E": grid([4], [[0]], 2), "G": PLAIN}, {}),
        ("centred", {"F": grid([4], [[-1], [1]])}, {}),
        ("read", {"E": PLAIN}, {"T": {(1, 0, 1): constant(1), (1, 1, 2): constant(1)}}),
    ],
)
def test_each_part_of_a_condition(condition, grids, images):
    images = images or ({"l": {}, "r": {}} if condition == "apart" else {})
    with pytest.raises(Reject, match="expected"):
        layout(condition, grids, **images)
