"""True identities under a label that says more: each condition on the grids has a case that fails.

What is changed here keeps both sides equal, so that only the layout speaks against it.
"""

import pytest
from certificate_cases import changed, verdict_on
from identity_cases import IDENTITIES

from convattn_check.layout import require_layout
from convattn_check.polynomial import constant
from convattn_check.reject import Reject


def grid(sides, shifts, stride=1):
    return {"border": "zero", "grid": sides, "shifts": shifts, "stride": stride}


def of_tensors(name, sizes, **tensors):
    """The verdict on a committed certificate of other sizes, with other tensors."""

    def change(body):
        body["sizes"] |= sizes
        body["tensors"] |= tensors

    return verdict_on(changed(IDENTITIES[name], change))


def image(first, pixels, whole):
    """The matrix that selects pixels one after the other."""
    return [str(int(q == first + a)) for a in range(pixels) for q in range(whole)]


STRIDE = {"k": 2, "m": 4, "q": 4, "r": 2, "z": 1}
GAP = {"a": 3, "b": 3, "d": 2, "k": 6, "q": 6}
ROWS = [[0, -1], [0, 1]]  # filters along the rows


@pytest.mark.parametrize(
    ("name", "sizes", "tensors"),
    [
        (  # another grid with as many nodes
            "A19.grid-stride",
            STRIDE,
            {
                "R": grid([4], [[0]], 2),
                "E": grid([2, 2], [[0, 0], [0, 1]]),
                "G": grid([4], [[0], [1]], 2),
            },
        ),
        (  # a sample that begins at pixel 1
            "A19.grid-stride",
            STRIDE,
            {
                "R": grid([4], [[1]], 2),
                "E": grid([4], [[-1], [0]]),
                "G": grid([4], [[0], [1]], 2),
            },
        ),
        (  # filters that are not centred
            "B19.language-causal",
            {},
            {"F": grid([5], [[1], [2], [3]])},
        ),
        ("B19.language-causal", {}, {"F": grid([5], [[-1], [1], [2]])}),
        (  # the images touch, above each other; the filters run along the rows
            "B19.cross-gap",
            GAP,
            {
                "J": grid([2, 3], ROWS),
                "S": grid([1, 3], ROWS),
                "l": image(0, 3, 6),
                "r": image(3, 3, 6),
            },
        ),
        ("B19.lemma1-one_by_one", {}, {"G": grid([5, 2], [[1, 1]])}),
        ("B19.sac-limit", {}, {"N": grid([4, 3], [[0, 0]]) | {"border": "nearest"}}),
        (
            "B19.sac-two_heads",
            {},
            {"L": grid([12], [[0]]) | {"border": "leaky", "leak": "1/3"}},
        ),
    ],
)
def test_a_true_identity_with_another_layout_is_rejected(name, sizes, tensors):
    verdict = of_tensors(name, sizes, **tensors)
    assert not verdict.accepted
    assert verdict.code == "layout", verdict


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
    ],
)
def test_each_part_of_a_condition(condition, grids, images):
    images = images or {"l": {}, "r": {}} if condition == "apart" else {}
    with pytest.raises(Reject, match="expected"):
        layout(condition, grids, **images)
