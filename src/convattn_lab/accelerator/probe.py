"""What JAX runs on: asked in a process of its own, which gives the device back when it ends.

python -m convattn_lab.accelerator.probe
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from convattn.cli.running import UsageError

SECONDS = 180.0
NVIDIA = Path("/dev/nvidiactl")  # there whenever the driver of an NVIDIA GPU is loaded


def environment() -> dict[str, Any]:
    """Versions, the device and its memory in bytes, by this process."""
    import jax

    from convattn_ledger.environment import device_environment, host_environment

    stats = jax.devices()[0].memory_stats() or {}
    return {**host_environment(), **device_environment(), "memory": stats.get("bytes_limit")}


def probed() -> dict[str, Any]:
    """`environment()` of a new process.

    Raises:
        UsageError: If JAX does not start, or sees no more than the CPU of a machine with an NVIDIA
            GPU.
    """
    command = [sys.executable, "-m", "convattn_lab.accelerator.probe"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired as error:
        raise UsageError(
            f"JAX did not start within {SECONDS:.0f} seconds, but expected a device that answers; "
            "see whether another process holds it"
        ) from error
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["it said nothing"]
        raise UsageError(
            f"JAX does not start here: {lines[-1]}; install the jaxlib of this device, or set "
            "JAX_PLATFORMS=cpu"
        )
    environment: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    if environment["backend"] == "cpu" and NVIDIA.exists() and not os.environ.get("JAX_PLATFORMS"):
        raise UsageError(
            "this machine has an NVIDIA GPU, but its jaxlib knows the CPU alone; pip install "
            "'jax[cuda12]' into this environment, or set JAX_PLATFORMS=cpu to take the CPU"
        )
    return environment


if __name__ == "__main__":
    print(json.dumps(environment()))
