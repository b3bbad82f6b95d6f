"""`assert_within` for trees of arrays: a result and its gradients."""

from typing import Any

import jax
import numpy as np
from comparison import assert_within


def assert_tree_within(actual: Any, expected: Any, *limits: Any, name: str = "out") -> None:
    """Leaf by leaf, within the sum of the limits, which are trees of the same leaves."""
    others = (jax.tree.leaves(tree) for tree in (expected, *limits))
    for (path, leaf), expected_leaf, *parts in zip(
        jax.tree.leaves_with_path(actual), *others, strict=True
    ):
        limit = sum(np.asarray(part) for part in parts)
        assert_within(leaf, expected_leaf, limit, name + jax.tree_util.keystr(path))
