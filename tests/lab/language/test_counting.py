"""The counted baselines, against fractions."""

import math
from collections import Counter
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from comparison import assert_within

from convattn.lab.language.bits import summarize
from convattn.lab.language.counting import bigram_bits, unigram_bits

TRAIN = b"abracadabra, abracadabra"
CLOSE = 2.0**-45  # a quotient, a logarithm of at most 16 bits, each within a few units of 2^-53


def symbols(text: bytes) -> np.ndarray:
    return np.frombuffer(text, np.uint8)


def test_unigrams_are_counted_with_one_added():
    counts, given = Counter(TRAIN), b"abz"
    expected = [-math.log2(Fraction(counts[b] + 1, len(TRAIN) + 256)) for b in given]
    assert_within(unigram_bits(TRAIN, symbols(given)), expected, CLOSE)
    with pytest.raises(AssertionError, match="too far"):
        assert_within(unigram_bits(TRAIN + b"z", symbols(given)), expected, CLOSE)


def test_bigrams_are_counted_with_one_added():
    pairs, firsts = Counter(pairwise(TRAIN)), Counter(TRAIN[:-1])
    given = [(ord("a"), ord("b")), (ord("b"), ord("r")), (ord("z"), ord("z")), (0, 255)]
    expected = [-math.log2(Fraction(pairs[p] + 1, firsts[p[0]] + 256)) for p in given]
    contexts, targets = np.array(given).T
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
