"""Where Coq is installed: the proofs compiled, and a Coq that evaluates terms over them."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from proofs.coq.computed_values import Evaluator

MODULES = ["foundation.image", "bridge.values"]


@pytest.fixture(scope="session")
def coq_value() -> Iterator[Callable[[str], Any]]:
    """The value of a term."""
    evaluator = Evaluator(Path("/work/main/proofs/coq"), MODULES)
    yield evaluator.evaluate
    evaluator.close()
