"""The windows of a text, for the trainer."""

from dataclasses import dataclass
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import DTypeLike

from convattn_lab.training.examples import TrainingExamples, checksum
from language_model.text import Windows


@dataclass(frozen=True, eq=False)
class TrainingText(TrainingExamples):
    """What a language model is trained and judged on: windows of length + 1 bytes.

    The first `length` bytes of a window are the inputs, the last `length` the targets.

    Attributes:
        train, test: Windows of one length. Nothing is ever chosen by the test windows.
        validation: Windows apart from both, or None.
    """

    train: Windows
    test: Windows
    validation: Windows | None = None

    unit_name: ClassVar[str] = "windows"
    validation_option: ClassVar[str] = "--text.validation"

    @property
    def positions(self) -> int:
        """How many bytes of a window are predicted."""
        return int(self.train.shape[1] - 1)

    def arrays(self, examples: Windows) -> np.ndarray:
        """The windows as the bytes they are."""
        return np.ascontiguousarray(examples)

    def load(
        self, arrays: Array, indices: Array, keys: Array | None, dtype: DTypeLike
    ) -> tuple[Array, Array]:
        """Bytes and the bytes after them, `[batch, length]` each; nothing is augmented.

        >>> words = TrainingText(np.frombuffer(b"abcbcd", np.uint8).reshape(2, 3), None)
        >>> inputs, targets = words.load(jnp.asarray(words.train), jnp.array([1]), None, "float32")
        >>> bytes(inputs.tolist()[0]), bytes(targets.tolist()[0])
        (b'bc', b'cd')
        """
        symbols = arrays[indices].astype(jnp.int32)
        return symbols[:, :-1], symbols[:, 1:]

    def identity(self) -> dict[str, Any]:
        """The number, length and checksum of the windows."""
        splits = {"training windows": self.train, "validation windows": self.validation}
        return {name: fingerprint(split) for name, split in splits.items()}


def fingerprint(windows: Windows | None) -> list[int] | None:
    """How many, how long, and the CRC-32 of their bytes."""
    if windows is None:
        return None
    return [*windows.shape, checksum(windows)]
