"""What the trainer asks of the examples that a model is trained and judged on."""

from collections.abc import Mapping, Sized
from typing import Any, Protocol

import jax
from jax import Array
from jax.sharding import Sharding
from jax.typing import DTypeLike


class TrainingExamples(Protocol):
    """Examples of any kind, such as images (`TrainingImages`).

    What `put` returns is a pytree of arrays whose first axis counts the examples.
    """

    @property
    def noun(self) -> str:
        """What messages call them, such as "images"."""
        ...

    @property
    def positions(self) -> int:
        """How many classes are told of each example; 1 for images."""
        ...

    @property
    def train(self) -> Sized:
        """What is trained on."""
        ...

    @property
    def judged(self) -> Mapping[str, Any]:
        """The sets that are evaluated by name: `test`, and `validation` if there is one."""
        ...

    def put(self, examples: Any, sharding: Sharding) -> Any:
        """One of these sets on the devices."""
        ...

    def load(
        self, held: Any, indices: Array, keys: Array | None, dtype: DTypeLike
    ) -> tuple[Array, Array]:
        """The inputs and the targets of some examples.

        Args:
            held: What `put` returned; traced, as all that follows.
            indices: `[batch]`.
            keys: One for each example, from which its augmentation is drawn; None for evaluation,
                where nothing is augmented.

        Returns:
            The inputs `[batch, …]`, and the targets: class numbers `[batch, *positions]`, or
            distributions over the classes `[batch, *positions, classes]`.
        """
        ...

    def identity(self) -> dict[str, Any]:
        """What decides the examples and their augmentation, in a form that JSON keeps."""
        ...


def count_of(held: Any) -> int:
    """How many examples there are in what `put` returned.

    >>> import jax.numpy as jnp
    >>> count_of({"labels": jnp.zeros(7)})
    7
    """
    return int(jax.tree.leaves(held)[0].shape[0])


class Judged:
    """Examples with a `test` part, and perhaps one for `validation`."""

    positions: Any = 1
    test: Any
    validation: Any

    @property
    def judged(self) -> dict[str, Any]:
        """The sets that are evaluated, by name."""
        apart = {} if self.validation is None else {"validation": self.validation}
        return {**apart, "test": self.test}
