"""PyTorch's packages for comparisons; tests that ask for one that is not installed are skipped."""

from typing import Any

import pytest


def torch_package(name: str) -> tuple[Any, Any]:
    """PyTorch, and `torchvision`, `timm` or a module of them.

    torchvision from PyPI beside a CPU build of PyTorch has no schema of two operators; they are
    defined while it is imported.
    """
    torch = pytest.importorskip("torch")
    schemas = torch.library.Library("torchvision", "FRAGMENT")
    try:
        pytest.importorskip("torchvision")
    except RuntimeError:
        for operator in ("nms", "qnms"):
            if not hasattr(torch.ops.torchvision, operator):
                signature = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
                schemas.define(f"{operator}{signature}")
        pytest.importorskip("torchvision")  # before the schemas go
    return torch, pytest.importorskip(name)
