import math

import jax
import pytest
from flax import nnx

from convattn_ledger.evidence.model_size import (
    APART,
    MATCHING,
    MIXING,
    convolution,
    flops,
    linear,
    parameters,
    resnet18,
    rounds_to,
    self_attention_model,
)


@pytest.mark.slow
def test_parts_have_the_parameters_of_flax_layers() -> None:
    def count(layer: nnx.Module) -> int:
        return sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(nnx.state(layer, nnx.Param)))

    rngs = nnx.Rngs(0)
    assert count(nnx.Linear(400, 512, rngs=rngs)) == linear("", 400, 512).parameters
    narrow = nnx.Linear(40, 9, use_bias=False, rngs=rngs)
    assert count(narrow) == linear("", 40, 9, bias=False).parameters
    weights, norm = convolution("", 3, 8, 16, 5)
    filters = nnx.Conv(8, 16, (3, 3), use_bias=False, rngs=rngs)
    assert count(filters) == weights.parameters
    assert count(nnx.BatchNorm(16, rngs=rngs)) == norm.parameters
    assert weights.products == weights.parameters * 25


@pytest.mark.parametrize(
    ("encoding", "pruned", "count"),
    [
        # 2 012 912 a layer: 3600·400 + 400 + 400·400 + 400 + 400·512 + 512 + 512·400 + 400 + 4·400
        ("quadratic", 0, 6 * (2_012_912 + 27) + 5_200 + 4_010),
        ("gaussian", 0, 6 * (2_012_912 + 54) + 5_200 + 4_010),
        ("gaussian", 15, 6 * (2_012_912 + 54) + 5_200 + 4_010 - 15 * 160_006),
        ("learned", 0, 6 * (2_012_912 + 62 * 400 + 18 * 400) + 5_200 + 4_010),
        ("content", 0, 6 * (2_012_912 + 62 * 200 + 2 * 401 * 3600) + 5_200 + 4_010),
    ],
)
def test_parameters_by_hand(encoding, pruned, count) -> None:
    assert parameters(self_attention_model(encoding, pruned=pruned)) == count


def test_products_with_the_attention_matrices_count_only_where_named() -> None:
    parts = self_attention_model("content")
    tokens = {part.name: part.products for part in parts}
    assert tokens[MIXING] == tokens[MATCHING] == 54 * 256 * 256 * 400
    assert flops(parts, MIXING) - flops(parts) == 2 * tokens[MIXING]
    assert flops(parts, *APART) == 2 * sum(part.products for part in parts)


def test_resnet_has_eight_blocks_and_three_shortcuts() -> None:
    names = [part.name for part in resnet18()]
    assert names.count("convolution") == 16
    assert names.count("shortcut") == 3


def test_rounding_is_to_the_printed_precision() -> None:
    assert rounds_to(12_149_999, "12.1M")
    assert not rounds_to(12_150_001, "12.1M")
    assert not rounds_to(12_049_999, "12.1M")
    assert rounds_to(15_499_999_999, "15B")
    assert not rounds_to(15_499_999_999, "15.0B")


@pytest.mark.parametrize(
    ("encoding", "pruned", "message"),
    [("sinusoid", 0, "expected one of quadratic"), ("gaussian", 55, "expected 0 to 54")],
)
def test_what_is_no_model_is_refused(encoding, pruned, message) -> None:
    with pytest.raises(ValueError, match=message):
        self_attention_model(encoding, pruned=pruned)
