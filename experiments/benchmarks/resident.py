"""By how much an implementation raises its process's memory, measured in a fresh process.

The process compiles, notes what it holds, sets the kernel's high-water mark back (Linux), runs the
forward and backward pass once and reads the mark. Where the mark cannot be set back it is the
largest size since the process began, compilation included, that is compared with; the figure is
then too small where compiling took more than running.
"""

import contextlib
import json
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

TIMEOUT = 900


def resident_increase(run: Callable[[], object]) -> int:
    """Bytes by which the largest resident size during `run` exceeds the size before it."""
    before = status("VmRSS")
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    if before is None:
        mark = high_water_mark()
        run()
        return high_water_mark() - mark
    run()
    return max(0, (status("VmHWM") or before) - before)


def status(field: str) -> int | None:
    """A field of /proc/self/status in bytes, or None where there is no such file."""
    path = Path("/proc/self/status")
    if not path.exists():
        return None
    for line in path.read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    return None


def high_water_mark() -> int:
    """The largest resident size of this process so far, in bytes."""
    kibibytes = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * kibibytes


def in_fresh_process(script: Path, arguments: list[str]) -> int | None:
    """Run `script --memory-only …` and read the bytes that it prints; None where it fails."""
    command = [sys.executable, str(script), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT, check=False)
        return int(json.loads(done.stdout)["resident"]) if done.returncode == 0 else None
    except (subprocess.TimeoutExpired, ValueError, KeyError):
        return None
