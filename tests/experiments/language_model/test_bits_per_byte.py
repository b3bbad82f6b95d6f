"""The counted baselines against fractions, and the windows that repeat nothing."""

import math
from collections import Counter
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from comparison import assert_within
from hypothesis import given
from hypothesis import strategies as st
from language_model.bits_per_byte import (
    bigram_bits,
    new_windows,
    repeated_bytes,
    summarize,
    unigram_bits,
)
from language_model.text import windows_of

TRAIN = b"abracadabra, abracadabra"
TEXTS = st.binary(min_size=5, max_size=40).map(lambda text: bytes(byte % 3 for byte in text))
CLOSE = 2.0**-45  # a quotient, a logarithm of at most 16 bits, each within a few units of 2^-53


def symbols(text: bytes) -> np.ndarray:
    return np.frombuffer(text, np.uint8)


def test_unigrams_are_counted_with_one_added():
    counts, text = Counter(TRAIN), b"abz"
    expected = [-math.log2(Fraction(counts[b] + 1, len(TRAIN) + 256)) for b in text]
    assert_within(unigram_bits(TRAIN, symbols(text)), expected, CLOSE)
    with pytest.raises(AssertionError, match="too far"):
        assert_within(unigram_bits(TRAIN + b"z", symbols(text)), expected, CLOSE)


def test_bigrams_are_counted_with_one_added():
    pairs, firsts = Counter(pairwise(TRAIN)), Counter(TRAIN[:-1])
    bigrams = [(ord("a"), ord("b")), (ord("b"), ord("r")), (ord("z"), ord("z")), (0, 255)]
    expected = [-math.log2(Fraction(pairs[p] + 1, firsts[p[0]] + 256)) for p in bigrams]
    contexts, targets = np.array(bigrams).T
    assert_within(bigram_bits(TRAIN, contexts, targets), expected, CLOSE)
    with pytest.raises(AssertionError, match="too far"):
        assert_within(bigram_bits(TRAIN, targets, contexts), expected, CLOSE)


def test_the_probabilities_of_all_bytes_make_one():
    every = np.arange(256)
    for bits in (
        unigram_bits(TRAIN, every),
        bigram_bits(TRAIN, np.full(256, ord("a")), every),
    ):
        assert_within((2.0**-bits).sum(), 1, 2.0**-40)


def test_one_window_has_no_error():
    assert math.isnan(summarize(np.ones((1, 3))).error)
    assert summarize(np.ones((2, 3))) == (1.0, 0.0)


@given(TEXTS, TEXTS, st.integers(1, 6))
def test_a_byte_is_repeated_iff_some_run_through_it_is_in_the_training_part(train, text, run):
    expected = [
        any(
            text[start : start + run] in train
            for start in range(max(0, position - run + 1), position + 1)
            if start + run <= len(text)
        )
        for position in range(len(text))
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
