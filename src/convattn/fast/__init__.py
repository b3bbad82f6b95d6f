"""Back ends of `apply_attention`: the same layer, as fast as its encoding allows."""

from convattn.fast.backend import BackEnd as BackEnd
from convattn.fast.backend import Work as Work
from convattn.fast.options import AttentionOptions as AttentionOptions
from convattn.fast.options import Dropout as Dropout
from convattn.fast.options import Window as Window
from convattn.fast.windowed import choose_windows as choose_windows
from convattn.fast.windowed import skipped_weight as skipped_weight
