"""Without PyTorch nothing here is collected; under `make torch` a test that is skipped fails."""

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "experiments"))
if find_spec("torch") is None or find_spec("torchax") is None:
    collect_ignore_glob = ["test_*.py"]


@pytest.fixture(autouse=True)
def _same_numbers():
    import torch

    torch.manual_seed(0)
