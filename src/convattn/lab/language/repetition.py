"""Which windows of a text repeat nothing long of the part that was trained on.

A manual repeats itself. A byte *is repeated* if it lies in a run of `run` bytes of the text that
stands, word for word, in the training part, too; a window is *new* if none of its bytes is. On new
windows a model cannot have learned a passage by heart.
"""

import numpy as np
from jaxtyping import Bool

from convattn.lab.data.text import windows_of
from convattn.operators.integers import as_integer

RUN = 64


def repeated_bytes(train: bytes, text: bytes, run: int = RUN) -> Bool[np.ndarray, "bytes"]:
    """Whether each byte of `text` lies in a run of `run` bytes that `train` holds, too.

    Raises:
        ValueError: For a run that is no positive integer.

    >>> repeated_bytes(b"abcd", b"xbcdy", run=3).tolist()
    [False, True, True, True, False]
    """
    run = as_integer(run, "run", 1)
    known = {train[start : start + run] for start in range(len(train) - run + 1)}
    found = np.zeros(len(text), bool)
    for start in range(len(text) - run + 1):
        if text[start : start + run] in known:
            found[start : start + run] = True
    return found


def new_windows(
    train: bytes, text: bytes, length: int, run: int = RUN
) -> Bool[np.ndarray, "windows"]:
    """For each window of `convattn.lab.data.text.windows_of`: whether none of it is repeated.

    >>> new_windows(b"abcd", b"xxxxbcdyyyy", 2, run=3).tolist()
    [True, False, False, False, True]
    """
    marks = repeated_bytes(train, text, run).astype(np.uint8).tobytes()
    return np.asarray(windows_of(marks, length).max(axis=1) == 0)
