from pathlib import Path

import pytest

from convattn_ledger import Run
from convattn_ledger.evidence import head_floor, layer_runs, unsaturated_layers
from convattn_ledger.locations import certificates_directory


@pytest.fixture
def run() -> Run:
    """A run over the committed certificates."""
    return Run(0, False, certificates_directory(), "S.finite", "here")


@pytest.fixture
def run_in(tmp_path):
    """A run over a folder that the test fills."""

    def start(**files: bytes) -> Run:
        for name, content in files.items():
            (tmp_path / name).write_bytes(content)
        return Run(0, False, Path(tmp_path), "S.finite", "here")

    return start


@pytest.fixture
def few_images(monkeypatch):
    """Two images for evidence, of 8 × 8 pixels, or of 16 × 16 where floors are computed."""
    whole = layer_runs.whole_images
    for module, pixels in (
        (layer_runs, slice(8, 16)),
        (head_floor, slice(16)),
        (unsaturated_layers, slice(None)),
    ):
        monkeypatch.setattr(
            module, "whole_images", lambda run, part=pixels: whole(run, 2)[:, part, part]
        )
