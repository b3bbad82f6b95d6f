"""Windows that repeat nothing of the training part."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from convattn.lab.data.text import windows_of
from convattn.lab.language.repetition import new_windows, repeated_bytes

TEXTS = st.binary(min_size=5, max_size=40).map(lambda text: bytes(byte % 3 for byte in text))


@given(TEXTS, TEXTS, st.integers(1, 6))
def test_a_byte_is_repeated_iff_some_run_through_it_is_in_the_training_part(train, text, run):
    expected = [
        any(
            text[start : start + run] in train
            for start in range(max(0, place - run + 1), place + 1)
            if start + run <= len(text)
        )
        for place in range(len(text))
    ]
    assert repeated_bytes(train, text, run).tolist() == expected


def test_a_passage_is_found_in_the_windows_that_touch_it():
    train, rng = b"the passage that is repeated word for word", np.random.default_rng(0)
    noise = bytes(rng.integers(128, 256, 30).tolist())
    text = noise + train[4:24] + noise
    new = new_windows(train, text, 8, run=20)
    assert len(new) == len(windows_of(text, 8))
    touched = [start < 50 and start + 9 > 30 for start in range(0, 8 * len(new), 8)]
    assert (~new).tolist() == touched
    assert 0 < sum(touched) < len(new)


@pytest.mark.parametrize("run", [0, -1, True, 2.5])
def test_a_run_that_is_no_positive_integer_is_refused(run):
    with pytest.raises(ValueError, match="run"):
        repeated_bytes(b"ab", b"ab", run)
