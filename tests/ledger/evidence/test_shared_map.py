from fractions import Fraction

import numpy as np

from convattn_ledger.evidence.shared_map import (
    shared_map_exists,
    solve_value_maps,
    spans_hold,
    tap_matrices,
)


def test_taps_outside_are_zero_rows() -> None:
    left, centre, right = (np.array(tap, int) for tap in tap_matrices(3, 3))
    assert (centre == np.eye(3)).all()
    assert (left == np.eye(3, k=-1)).all()
    assert (right == np.eye(3, k=1)).all()


def test_a_shared_map_is_more_than_the_spans() -> None:
    hard = [[[Fraction(1), Fraction(0)]] * 2, [[Fraction(0), Fraction(1)]] * 2]
    taps = tap_matrices(1, 2)
    assert spans_hold(hard, taps)
    assert not shared_map_exists(hard, taps)
    assert solve_value_maps(hard, taps, np.array([[[1]]])) is None
    assert solve_value_maps(hard, taps, np.array([[[0]]])) is not None
    assert shared_map_exists([*hard, taps[0]], taps)


def test_without_the_spans_there_are_no_maps() -> None:
    uniform = [[[Fraction(1, 2)] * 2] * 2]
    assert not spans_hold(uniform, tap_matrices(1, 2))
    assert not shared_map_exists(uniform, tap_matrices(1, 2))


def test_value_maps_solve_the_system() -> None:
    taps = tap_matrices(3, 4)
    rng = np.random.default_rng(0)
    mixing = np.array([[2, 1, 0], [0, 1, 1], [1, 0, 3]])
    heads = [
        [
            [Fraction(int(n)) for n in row]
            for row in sum(c * np.array(t, int) for c, t in zip(line, taps, strict=True))
        ]
        for line in mixing
    ]
    kernel = rng.integers(-9, 10, (3, 2, 3))
    maps = solve_value_maps(heads, taps, kernel)
    assert maps is not None
    for q in range(4):
        for k in range(4):
            attended = sum(head[q][k] * each for head, each in zip(heads, maps, strict=True))
            expected = sum(int(tap[q][k]) * w for tap, w in zip(taps, kernel, strict=True))
            assert (attended == expected).all()
