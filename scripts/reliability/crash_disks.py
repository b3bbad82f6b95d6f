"""Trials of a command on a disk that is full, and on one that cannot be written to."""

import contextlib
import os
import random
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from crash_commands import matches
from crash_process import Place
from crash_trials import Tally, Trials

FULL = (0.0, 0.02, 0.2, 0.5, 0.8)  # of what a run writes, so much has room
READ_ONLY = -1.0
LARGE = 64 << 20
PAGE = 4096


def full_and_read_only(trials: Trials, tally: Tally, most: int | None) -> None:
    """Full disks of several sizes, then larger; and one that cannot be written to.

    Args:
        trials: Of the command.
        tally: What is seen.
        most: So many of the disks are drawn; all of them if not given.
    """
    disks = [(earlier, part) for part in (READ_ONLY, *FULL) for earlier in (False, True)]
    if most is not None and most < len(disks):
        disks = random.Random(f"{trials.name} disks {trials.seed}").sample(disks, most)
    for earlier, part in disks:
        origin = trials.before if earlier else trials.empty
        where = f"{'an earlier output' if earlier else 'nothing'} there"
        if part == READ_ONLY:
            with disk(trials.folder / "disk", LARGE, origin) as place:
                resize(place.root, LARGE, "ro")
                with tempfile.TemporaryDirectory(dir=trials.folder) as temporary:
                    outside = Place(place.root, Path(temporary))
                    refused(trials, tally, outside, f"a read-only disk, {where}")
            continue
        room = int(part * max(trials.written, 4 * PAGE))
        with disk(trials.folder / "disk", room, origin) as place:
            where = f"a disk with room for {room} bytes, {where}"
            refused(trials, tally, place, where)
            resize(place.root, LARGE)
            trials.finish(tally, trials.copy(place), where)


def refused(trials: Trials, tally: Tally, place: Place, where: str) -> None:
    """It ends with an error in one line, or well, and damages nothing."""
    before, inside = trials.command.files(place), trials.command.strangers(place)
    run = trials.start(place)
    try:
        run.wait(ready=trials.command.program.ready)
    except TimeoutError as problem:
        tally.note("unclear", str(problem), where)
    run.kill()
    tally.trials += 1
    last = (run.error().strip().splitlines() or [""])[-1]
    path = any(part in last for part in (str(place.root), str(place.temporary), "out/"))
    if run.code != trials.command.code:
        tally.said.add(" ".join(word for word in last.split() if "/" not in word))
        if run.code != 2 or not path or "Traceback" in run.error():
            tally.note("unclear", f"exit code {run.code}: {run.error()[-1500:]}", where)
    trials.look(tally, place, before, where)
    for name in sorted(trials.command.strangers(place) - inside - trials.names):
        if not matches(name, trials.command.may_go):  # as a checkpoint, or what Orbax has begun
            tally.note("left over", name, where)


@contextlib.contextmanager
def disk(folder: Path, room: int, origin: Place) -> Iterator[Place]:
    """A place on a small disk of its own, in memory."""
    folder.mkdir(exist_ok=True)
    words = ["mount", "-t", "tmpfs", "-o", f"size={LARGE}", "crash", str(folder)]
    subprocess.run(words, check=True)
    try:
        shutil.copytree(origin.root, folder, dirs_exist_ok=True)
        place = Place.make(folder)
        status = os.statvfs(folder)
        taken = (status.f_blocks - status.f_bfree) * status.f_frsize
        resize(folder, max(PAGE, taken + room))
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def resize(folder: Path, size: int, access: str = "rw") -> None:
    """Change the size of a disk, and whether it can be written to."""
    subprocess.run(["mount", "-o", f"remount,{access},size={size}", str(folder)], check=True)
