"""Ranges are refused by name."""

import pytest
from language_model.settings import LanguageModelSettings, LanguageSettings, TextSettings


@pytest.mark.parametrize(
    ("kind", "name", "value", "message"),
    [
        (LanguageModelSettings, "operator", "rnn", "expected 'attention' or 'convolution'"),
        (LanguageModelSettings, "scales", (0,), r"scales\.0=0, but expected at least 1"),
        (TextSettings, "length", 0, "expected at least 1$"),
        (LanguageSettings, "text", 3, "text=3, but expected"),
    ],
)
def test_a_value_out_of_range_is_refused_by_name(kind, name, value, message) -> None:
    with pytest.raises(ValueError, match=message):
        kind(**{name: value})
