"""What a verification ran on: versions, devices and the settings that decide the arithmetic."""

import importlib.metadata
import os
import platform
import sys
from typing import Any

_PACKAGES = {
    "convattn": "convattn",
    "jax": "jax",
    "jaxlib": "jaxlib",
    "numpy": "numpy",
    "flint": "python-flint",
}


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def host_environment() -> dict[str, Any]:
    """Versions and machine, found without importing any of the packages."""
    versions: dict[str, str | None] = {"python": platform.python_version()}
    for name, distribution in _PACKAGES.items():
        try:
            versions[name] = importlib.metadata.version(distribution)
        except importlib.metadata.PackageNotFoundError:
            versions[name] = None
    return {
        **versions,
        "platform": platform.platform(),
        "cores": os.cpu_count(),
    }


def device_environment() -> dict[str, Any]:
    """What JAX runs on and how, in this process; empty if JAX is not loaded."""
    jax = sys.modules.get("jax")
    if jax is None:
        return {}
    return {
        "backend": jax.default_backend(),
        "device": jax.devices()[0].device_kind,
        "devices": len(jax.devices()),
        "x64": bool(jax.config.jax_enable_x64),
        "default_matmul_precision": jax.config.jax_default_matmul_precision,
    }
