"""What an identity of a claim consists of."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

Kind = str | Sequence[str]
Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Identity:
    """Formulas (formula.py) and which of the tensors in them must be equal, or must differ.

    `tensors` gives each tensor its indices and the kind of its entries: `symbols`, `ones`,
    `identity`, `numbers` (any), `positive` numbers, a border of grid_matrices.py, or the very
    numbers. Further kinds are `nonzero` numbers, a `mask` (zeros and ones, some zero, and a one for
    every value of the last index) and `causal`, [second index ≤ first]. `sizes` names the indices
    whose size is not free but a product: of other indices' sizes, or the digit 1. All others are at
    least 2. `fewer` names pairs of which the first is the smaller; `shifts` those of a grid; and
    `layout` how the grids lie to each other (layout.py).
    """

    meaning: str
    tensors: Mapping[str, tuple[tuple[str, ...], Kind]]
    definitions: tuple[str, ...]
    equal: Pairs = ()
    differ: Pairs = ()
    sizes: Mapping[str, str] = field(default_factory=dict)
    fewer: Pairs = ()
    shifts: Mapping[str, tuple[tuple[int, ...], ...]] = field(default_factory=dict)
    layout: tuple[tuple[str, ...], ...] = ()

    @cached_property
    def letters(self) -> frozenset[str]:
        """All indices."""
        inside = (part for text in self.definitions for part in re.findall(r"\[(.*?)\]", text))
        indices = {letter for part in inside for letter in part if letter.isalpha()}
        return frozenset(indices.union(*(axes for axes, _ in self.tensors.values())))


def tensors(**kinds: str) -> dict[str, tuple[tuple[str, ...], Kind]]:
    """Each tensor as "indices kind", such as A="kmn symbols"; "c symbols" with indices "" is "- …".

    >>> tensors(A="kn symbols", c="- numbers")
    {'A': (('k', 'n'), 'symbols'), 'c': ((), 'numbers')}
    """
    parts = {name: text.split(" ") for name, text in kinds.items()}
    return {
        name: (() if axes == "-" else tuple(axes), kind) for name, (axes, kind) in parts.items()
    }
