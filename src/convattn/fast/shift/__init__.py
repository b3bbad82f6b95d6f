"""Heads that look at a few shifts: slices and a mean, never a row of weights."""

from convattn.fast.shift.back_end import SHIFT as SHIFT
