"""Attention as a row softmax and a column softmax, exactly, where the scores are a sum of both."""

from convattn.fast.separable.back_end import SEPARABLE as SEPARABLE
