"""What the trainer asks of the examples that a model is trained and judged on."""

import zlib
from typing import Any, ClassVar

import jax
import numpy as np
from jax import Array
from jax.typing import DTypeLike


class TrainingExamples:
    """Examples of any kind, such as images (`TrainingImages`).

    What `arrays` returns is a pytree of arrays whose first axis counts the examples.

    Attributes:
        unit_name: What messages call them, such as "images".
        validation_option: With which some of them are split off for validation.
        positions: How many classes are told of each example; 1 for images.
        train: What is trained on.
        test: What is evaluated.
        validation: The same, apart from both; or None.
    """

    unit_name: ClassVar[str]
    validation_option: ClassVar[str]
    positions: Any = 1
    train: Any
    test: Any
    validation: Any

    @property
    def eval_sets(self) -> dict[str, Any]:
        """The sets that are evaluated, by name."""
        validation = {} if self.validation is None else {"validation": self.validation}
        return {**validation, "test": self.test}

    def arrays(self, examples: Any) -> Any:
        """One of these sets, as the arrays that the devices are to hold."""
        raise NotImplementedError

    def load(
        self, arrays: Any, indices: Array, keys: Array | None, dtype: DTypeLike
    ) -> tuple[Array, Array]:
        """The inputs and the targets of some examples.

        Args:
            arrays: What `arrays` returned, on the devices; traced, as all that follows.
            indices: `[batch]`.
            keys: One for each example, from which its augmentation is drawn; None for evaluation,
                where nothing is augmented.

        Returns:
            The inputs `[batch, …]`, and the targets: class numbers `[batch, *positions]`, or
            distributions over the classes `[batch, *positions, classes]`.
        """
        raise NotImplementedError

    def identity(self) -> dict[str, Any]:
        """What decides the examples and their augmentation, in a form that JSON keeps."""
        raise NotImplementedError


def checksum(*arrays: np.ndarray) -> int:
    """The CRC-32 of the bytes of arrays, one after the other."""
    total = 0
    for array in arrays:
        total = zlib.crc32(np.ascontiguousarray(array).data, total)
    return total


def count_of(arrays: Any) -> int:
    """How many examples there are in what `arrays` returned.

    >>> import jax.numpy as jnp
    >>> count_of({"labels": jnp.zeros(7)})
    7
    """
    return int(jax.tree.leaves(arrays)[0].shape[0])
