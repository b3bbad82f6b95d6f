from pathlib import Path

import pytest

from convattn_ledger import Run
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
