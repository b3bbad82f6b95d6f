"""Ranges are refused by name."""

import pytest
from image_similarity.settings import PairSettings, SimilarityRunSettings, SimilaritySettings


@pytest.mark.parametrize(
    ("kind", "name", "value", "message"),
    [
        (SimilaritySettings, "attention", "own", "expected 'none': segments tell"),
        (SimilaritySettings, "channels", 3, "expected a multiple of 2"),
        (SimilaritySettings, "gap", -1, "expected at least 0$"),
        (PairSettings, "rounds", 0, "expected at least 1$"),
        (SimilarityRunSettings, "pairs", 3, "pairs=3, but expected"),
    ],
)
def test_a_value_out_of_range_is_refused_by_name(kind, name, value, message) -> None:
    with pytest.raises(ValueError, match=message):
        kind(**{name: value})
