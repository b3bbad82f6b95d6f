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


class Kernels(nn.Module):
    """Five kernels of one shape, and a convolution that is left and convolves twice."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.twice = nn.Conv2d(2, 2, 3, padding=1), Twice(2, 2, 3, padding=1)
        self.kernels = nn.ParameterList(torch.randn(2, 2, 3, 3) for _ in range(5))

    def forward(self, images):
        for kernel in self.kernels:
            images = torch.tanh(torch.conv2d(images, kernel, padding=1))
        return self.twice(self.twice(self.conv(images)))


class Twice(nn.Conv2d):
    def forward(self, images):
        return torch.conv2d(super().forward(images), torch.ones(2, 2, 1, 1))


def test_each_convolution_of_a_function_is_counted() -> None:
    report = to_attention(Kernels().eval(), torch.randn(1, 2, 9, 9)).report
    own, *others = report.left
    assert own.startswith("twice: ")
    assert others == [
        *(f"the model: a function's, kernel (2, 2, 3, 3), {n} of 5" for n in range(1, 6)),
        *(f"twice: a function's, kernel (2, 2, 1, 1), {n} of 2" for n in (1, 2)),
    ]
    assert "8 convolutions are left" in str(report)


def test_a_complex_convolution_is_one() -> None:
    class Complex(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = nn.Conv2d(2, 2, 3)
            self.complex = nn.Conv2d(2, 2, 3, dtype=torch.complex64)

        def forward(self, images):
            return self.complex(self.conv(images).to(torch.complex64)).abs()

    report = to_attention(Complex().eval(), torch.randn(1, 2, 9, 9)).report
    assert [line.split(":")[0] for line in report.left] == ["complex"]
