"""Heads whose weights fall off: keys outside a window of shifts are skipped, with a bound."""

from convattn.fast.windowed.back_end import WINDOWED as WINDOWED
from convattn.fast.windowed.window import choose_windows as choose_windows
from convattn.fast.windowed.window import skipped_weight as skipped_weight
