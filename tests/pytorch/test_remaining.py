"""Convolutions of functions, scripts and threads are counted."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch import nn

from convattn.torch import to_attention

IMAGES = torch.ones(1, 3, 6, 5)


class Applied(nn.Module):
    def __init__(self, *parts) -> None:
        super().__init__()
        self.conv, self.parts = nn.Conv2d(3, 3, 3, padding=1), nn.ModuleList(parts)

    def forward(self, images):
        images = self.conv(images).relu_()
        for part in self.parts:
            with ThreadPoolExecutor(1) as threads:
                images = threads.submit(part, images).result()
        return torch.mkldnn_convolution(
            images, torch.ones(2, 3, 3, 3), None, (0, 0), (1, 1), (1, 1), 1
        )


class Function(nn.Module):
    def forward(self, images):
        return torch.conv2d(images, torch.ones(3, 3, 1, 1))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_convolutions_of_scripts_threads_and_other_operators_are_counted() -> None:
    script = torch.jit.trace(nn.Sequential(nn.Conv2d(3, 3, 1), nn.Conv2d(3, 3, 1)), IMAGES)
    report = to_attention(Applied(script, Function()), IMAGES).report
    ending = "in a compiled script, which cannot be converted; put the module that it was made from"
    assert report.left == (
        f"parts.0: aten::_convolution 1 of 2 {ending} in its place",
        f"parts.0: aten::_convolution 2 of 2 {ending} in its place",
        "parts.1: a function's, kernel (3, 3, 1, 1)",
        "the model: a function's, kernel (2, 3, 3, 3)",
    )
    assert report.passed is True
