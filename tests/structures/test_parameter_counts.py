import pytest

from convattn.structures import parameter_count, saves


def test_counts() -> None:
    assert parameter_count(9, 4, 6) == 216
    assert parameter_count(9, 4, 6, groups=2) == 108
    assert parameter_count(9, 4, 6, separable=True) == 60
    assert parameter_count(9, 4, 6, controls=3) == 99


def test_when_they_save() -> None:
    assert [saves(9, 3, 3, controls=h) for h in (1, 4, 5, 9)] == [True, True, False, False]
    assert [saves(4, 1, q, controls=3) for q in (12, 13)] == [False, True]  # PQ > K(K - 1)
    assert [saves(2, 7, q, separable=True) for q in (2, 3)] == [False, True]
    assert [saves(1, 6, 6, groups=n) for n in (1, 2)] == [False, True]


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((0, 1, 1), {}, "integer ≥ 1"),
        ((9.5, 6, 4), {}, "size=9.5"),
        ((9, True, 4), {}, "in_channels=True"),
        ((9, 6, 4), {"groups": 2.0}, "groups=2.0"),
        ((1, 1, 1), {"controls": 0}, "integer ≥ 1"),
        ((1, 4, 6), {"groups": 4}, "divide both 4 input and 6 output"),
        ((1, 4, 6), {"groups": 2, "separable": True}, "Θ has one form"),
        ((1, 4, 6), {"groups": 2, "controls": 2}, "Θ has one form"),
    ],
)
def test_what_is_no_form_is_refused(arguments, options, message, unchecked) -> None:
    with pytest.raises(ValueError, match=message):
        parameter_count(*arguments, **options)
