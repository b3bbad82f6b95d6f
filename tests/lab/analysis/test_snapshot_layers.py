import pytest

from convattn.lab.analysis.snapshot_layers import spread_epochs


@pytest.mark.parametrize("count", [2, 3, 6, 16])
def test_first_and_last_are_among_them(count) -> None:
    epochs = list(range(0, 301, 5))
    found = spread_epochs(epochs, count)
    assert found[0] == 0
    assert found[-1] == 300
    assert len(found) <= count
    assert found == sorted(set(found) & set(epochs))


def test_a_run_that_was_begun_elsewhere_need_not_begin_at_zero() -> None:
    assert spread_epochs([7, 8, 9, 20], 3) == [7, 8, 20]
