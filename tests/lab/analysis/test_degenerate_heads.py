import numpy as np
import pytest

from convattn.lab.analysis import degenerate_heads as module
from convattn.lab.analysis.degenerate_heads import Thresholds, degenerate_heads

TURN = np.array([[0.6, -0.8], [0.8, 0.6]])


def root(largest: float, least: float) -> np.ndarray:
    """R such that Σ⁻¹ = RᵀR has these eigenvalues, in turned directions."""
    return np.diag([largest, least]) ** 0.5 @ TURN


CASES = {
    "round": (root(1, 1), False),
    "flat": (root(0.9e-5, 0.9e-5), True),
    "just not flat": (root(1.1e-5, 1.1e-5), False),
    "a stripe": (root(1, 0.9e-5), True),
    "just no stripe": (root(1, 1.1e-5), False),
    "singular": (root(1, 0), True),
    "nothing": (root(0, 0), True),
    "strong": (root(1e8, 1e4), False),
}


def check(thresholds: Thresholds | None = None) -> None:
    found = degenerate_heads(np.array([case for case, _ in CASES.values()]), thresholds)
    assert dict(zip(CASES, found.tolist(), strict=True)) == {
        name: verdict for name, (_, verdict) in CASES.items()
    }


def test_the_criterion_is_the_papers() -> None:
    check()


@pytest.mark.parametrize(
    "wrong",
    [
        Thresholds(eigenvalue=1e-5**0.5),  # of R in place of Σ⁻¹
        Thresholds(condition=1e5**0.5),
        Thresholds(condition=1e10),
        Thresholds(eigenvalue=1e-10),
    ],
)
def test_wrong_thresholds_are_seen(wrong) -> None:
    with pytest.raises(AssertionError):
        check(wrong)


def test_a_criterion_on_the_root_is_seen(monkeypatch) -> None:
    right = np.linalg.svd
    monkeypatch.setattr(module.np.linalg, "svd", lambda a, **how: right(a, **how) ** 0.5)
    with pytest.raises(AssertionError):
        check()


def test_an_almost_singular_root_in_float32_has_its_own_condition() -> None:
    # The eigenvalues of a float32 RᵀR could not tell 10⁻⁶ from zero next to 10².
    roots = np.array([root(1e2, 1e-6), root(1e2, 1.2e-3)], np.float32)
    assert degenerate_heads(roots).tolist() == [True, False]


def test_no_heads_are_none() -> None:
    assert degenerate_heads(np.zeros((0, 2, 2))).shape == (0,)


def test_numbers_that_are_not_finite_are_refused_by_head() -> None:
    roots = np.array([np.eye(2), np.full((2, 2), np.nan), np.full((2, 2), np.inf)])
    with pytest.raises(ValueError, match=r"not finite in heads \[2, 3\]"):
        degenerate_heads(roots)


@pytest.mark.parametrize("name", ["eigenvalue", "condition"])
@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_thresholds_must_be_positive(name, value) -> None:
    with pytest.raises(ValueError, match=f"threshold {name}=.*expected a number > 0"):
        Thresholds(**{name: value})
