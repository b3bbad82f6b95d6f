"""The architectures of experiments/frameworks.py, against PyTorch's own outputs."""

import pytest
from frameworks import ARCHITECTURES, LIMIT, Architecture, measure, table

QUICK = ("torchvision/alexnet", "torchvision/resnet18", "timm/vit_tiny_patch16_224")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "architecture",
    [
        pytest.param(each, id=each.name, marks=() if each.name in QUICK else pytest.mark.slow)
        for each in ARCHITECTURES
    ],
)
def test_attention_gives_pytorchs_outputs(architecture: Architecture) -> None:
    row = measure(architecture)
    assert row.difference <= architecture.limit
    assert row.module_difference <= LIMIT
    assert row.converted == row.convolutions > 0
    assert 0 < row.converted_modules <= row.modules
    assert architecture.name in list(table([row]))[-1]


def test_there_are_many_of_both_libraries() -> None:
    names = [each.name for each in ARCHITECTURES]
    assert len(names) == len(set(names)) >= 40
    assert {name.partition("/")[0] for name in names} == {"torchvision", "timm"}
