"""The machine and the versions that a run's figures belong to."""

import importlib.metadata
import importlib.util
import platform
from pathlib import Path
from typing import Any

from convattn_ledger.environment import device_environment, host_environment


def environment(date: str | None) -> dict[str, Any]:
    """Versions, processor, cores and device; the date is the caller's to give."""
    torch = importlib.metadata.version("torch") if importlib.util.find_spec("torch") else None
    return {
        **host_environment(),
        **device_environment(),
        "torch": torch,
        "processor": processor(),
        "date": date,
    }


def processor() -> str:
    """The model name of the processor."""
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()
