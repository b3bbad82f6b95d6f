"""Trials of a command on a disk that is full, and on one that cannot be written to."""

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from crash_process import Place
from crash_trials import Tally, Trials

FULL = (0.0, 0.02, 0.2, 0.5, 0.8)  # of what a run writes, so much has room
LARGE = 64 << 20


def full_and_read_only(trials: Trials, tally: Tally) -> None:
    """Full disks of several sizes, then larger; and one that cannot be written to."""
    needed = {False: 0, True: 0}
    for earlier in needed:
        place = trials.copy(trials.before if earlier else trials.empty)
        trials.whole(place)
        needed[earlier] = used(place.root)
    for earlier in (False, True):
        origin = trials.before if earlier else trials.empty
        begun = used(origin.root)
        more = max(needed[earlier] - begun, 1 << 14)
        for part in FULL:
            size = begun + int(part * more)
            with disk(trials.folder / "disk", size, origin) as place:
                where = f"a disk with room for {size - begun} bytes, earlier: {earlier}"
                refused(trials, tally, place, where)
                larger(place.root, 64 << 20)
                trials.finish(tally, trials.copy(place), where)
        with disk(trials.folder / "disk", 64 << 20, origin) as place:
            larger(place.root, 64 << 20, "ro")
            with tempfile.TemporaryDirectory(dir=trials.folder) as temporary:
                outside = Place(place.root, Path(temporary))
                refused(trials, tally, outside, f"a read-only disk, earlier: {earlier}")


def refused(trials: Trials, tally: Tally, place: Place, where: str) -> None:
    """It ends with an error in one line, or well, and damages nothing."""
    before, inside = trials.command.files(place), trials.command.strangers(place)
    run = trials.start(place)
    try:
        run.wait(ready=trials.command.program.ready)
    except TimeoutError as problem:
        tally.note("unclear", str(problem), where)
    tally.trials += 1
    last = (run.error().strip().splitlines() or [""])[-1]
    clear = (run.code == 2 and str(place.root) in last) or "out/" in last or "tmp" in last
    if run.code != trials.command.code and (not clear or "Traceback" in run.error()):
        tally.note("unclear", f"exit code {run.code}: {run.error()[-1500:]}", where)
    elif os.environ.get("CRASH_VERBOSE"):
        print(f"    {where}: {run.code} {last}", flush=True)
    run.kill()
    trials.look(tally, place, before, where)
    for name in sorted(trials.command.strangers(place) - inside - trials.names):
        tally.note("left over", name, where)


def used(folder: Path) -> int:
    """How much of a disk a folder takes, in bytes."""
    return sum(4096 * -(-path.lstat().st_size // 4096 or -1) for path in folder.rglob("*"))


@contextlib.contextmanager
def disk(folder: Path, size: int, origin: Place) -> Iterator[Place]:
    """A place on a small disk of its own, in memory."""
    folder.mkdir(exist_ok=True)
    words = ["mount", "-t", "tmpfs", "-o", "size=64m", "crash", str(folder)]
    subprocess.run(words, check=True)
    try:
        shutil.copytree(origin.root, folder, dirs_exist_ok=True)
        place = Place.make(folder)
        status = os.statvfs(folder)
        taken = (status.f_blocks - status.f_bfree) * status.f_frsize
        larger(folder, max(4096, taken + size - used(origin.root)))
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def larger(folder: Path, size: int, access: str = "rw") -> None:
    """Change the size of a disk."""
    subprocess.run(["mount", "-o", f"remount,{access},size={size}", str(folder)], check=True)
