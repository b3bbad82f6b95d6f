"""Trials of a command: it is killed, what it leaves is looked at, and the next run goes on."""

import contextlib
import fcntl
import hashlib
import json
import os
import random
import re
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crash_commands import Command
from crash_process import Place, Run, apart, start_fork, start_process
from crash_readers import read_parts

LONGEST_CHAIN = 8  # kills before a run may end
PAUSE = 0.005  # seconds at most from a change that was seen to the kill
KINDS = ("damaged", "lost", "not resumed", "left over", "unclear")


@dataclass
class Tally:
    """What was seen in one part of the trials of a command."""

    command: str
    part: str
    trials: int = 0
    ended: int = 0
    most_left: int = 0
    found: list[tuple[str, str]] = field(default_factory=list)
    seconds: float = 0.0
    said: set[str] = field(default_factory=set)

    def note(self, kind: str, problem: str, where: str) -> None:
        """Something that must not be."""
        self.found.append((kind, f"{kind}: {problem} [{where}]"))

    def __str__(self) -> str:
        """A row of the table."""
        numbers = [sum(kind == each for each, _ in self.found) for kind in KINDS]
        return (
            f"{self.command:26} {self.part:10} {self.trials:6} {self.ended:6} "
            + " ".join(
                f"{number:>{len(kind)}}" for kind, number in zip(KINDS, numbers, strict=True)
            )
            + f" {self.most_left:5} {self.seconds:8.0f}"
        )


HEADING = f"{'command':26} {'part':10} {'trials':>6} {'runs':>6} {' '.join(KINDS)}  most  seconds"


class Trials:
    """The trials of one command, in a folder of their own."""

    def __init__(self, name: str, command: Command, folder: Path, seed: int) -> None:
        """Run it once without a kill, and once before that with other arguments."""
        self.name, self.command, self.folder, self.seed = name, command, folder, seed
        self.number, self.known = 0, dict[str, tuple[Any, str]]()
        self.inputs = folder / "in"
        self.inputs.mkdir(parents=True)
        command.prepare(self.inputs)
        self.empty = Place.make(folder / "empty")
        self.before = self.copy(self.empty)
        self.whole(self.before, before=True)
        finished = self.copy(self.empty)
        told = folder / "calls.json"
        self.calls, self.seconds, self.changes = [], [], []
        for place in (finished, self.copy(self.before)):
            began, seen = time.monotonic(), Watch(place)
            run = self.start(place, told=told)
            run.wait(seen.never, ready=command.program.ready)
            self.expect_end(run)
            self.seconds.append(time.monotonic() - began)
            self.changes.append(max(1, seen.count))
            self.calls.append(json.loads(told.read_text()))
        self.result, damaged = self.read(finished)
        if damaged:
            raise RuntimeError(f"{name}: a run that nothing has ended leaves {damaged}")
        self.written = sum(path.lstat().st_size for path in finished.root.rglob("*"))
        self.names = command.files(finished) | command.strangers(finished)

    def copy(self, place: Place) -> Place:
        """The same files in a new place."""
        self.number += 1
        root = self.folder / f"trial-{self.number}"
        shutil.copytree(place.root, root)
        return Place.make(root)

    def start(self, place: Place, *, before: bool = False, **how: Any) -> Run:
        """A run in a fork."""
        words = self.command.words(str(self.inputs), before)
        return start_fork(self.command.program, words, place, **how)

    def read(self, place: Place) -> tuple[dict[str, Any], list[str]]:
        """What the output says, without what differs by run, and which files are damaged."""
        parts = self.command.parts(place)
        keys = {name: f"{path.suffix} {digest_of(path)}" for name, path in parts.items()}
        new = sorted(name for name, key in keys.items() if key not in self.known)
        if new:
            answers = apart(read_parts, [parts[name] for name in new])
            self.known |= {keys[name]: answer for name, answer in zip(new, answers, strict=True)}
        said = {re.sub(r"events\.out.*", "events", name): self.known[keys[name]] for name in parts}
        found = {name: answer for name, (answer, problem) in said.items() if not problem}
        return found, [f"{name}: {problem}" for name, (_, problem) in said.items() if problem]

    def whole(self, place: Place, *, before: bool = False) -> Run:
        """A run that nothing ends."""
        run = self.start(place, before=before)
        run.wait(ready=self.command.program.ready)
        self.expect_end(run)
        return run

    def expect_end(self, run: Run) -> None:
        """Raises:
        RuntimeError: If it did not end as it should.
        """
        if run.code != self.command.code:
            raise RuntimeError(f"{self.name} ends with {run.code}: {run.output()[-2000:]}")

    def look(self, tally: Tally, place: Place, before: set[str], where: str) -> None:
        """After a kill: nothing is damaged, and nothing lost."""
        wait_for_locks(place.out)
        names = self.command.files(place)
        for name in sorted(self.command.kept(before) - names):
            tally.note("lost", name, where)
        _, damaged = self.read(place)
        for problem in damaged:
            tally.note("damaged", problem, where)
        strangers = self.command.strangers(place) - self.names
        tally.most_left = max(tally.most_left, len(strangers))

    def finish(self, tally: Tally, place: Place, where: str, run: Run | None = None) -> None:
        """The next run ends, with the result of one that nothing has ended, and no other files."""
        try:
            if run is None:
                self.whole(place)
            else:
                self.expect_end(run)
        except (RuntimeError, TimeoutError) as error:
            tally.note("not resumed", str(error), where)
            return
        tally.ended += 1
        found, damaged = self.read(place)
        for problem in damaged:
            tally.note("damaged", problem, where)
        for name in sorted(self.result.keys() | found.keys()):
            if found.get(name) != self.result.get(name):
                here = (
                    "other content"
                    if name in found and name in self.result
                    else ("missing" if name in self.result else "more")
                )
                tally.note("not resumed", f"{name}: {here}", where)
        names = self.command.files(place) | self.command.strangers(place)
        for name in sorted(names - self.names):
            tally.note("left over", name, where)
        shutil.rmtree(place.root)

    def every_call(self, tally: Tally, most: int | None = None) -> None:
        """Killed at each call; then it runs to its end, once for every state of the files.

        Args:
            tally: What is seen.
            most: So many of the calls are drawn; all of them if not given.
        """
        seen = set[tuple[bool, str]]()
        for origin, calls in ((self.empty, self.calls[0]), (self.before, self.calls[1])):
            stops = list(range(1, len(calls) + 1))
            if most is not None and most < len(stops):
                drawn = random.Random(f"{self.name} calls {self.seed}")
                stops = sorted(drawn.sample(stops, most))
            for stop in stops:
                where = f"call {stop} of {len(calls)}, {calls[stop - 1]}"
                place = self.copy(origin)
                before = self.command.files(place)
                run = self.start(place, stop=stop)
                run.wait(ready=self.command.program.ready)
                run.kill()
                tally.trials += run.code == -9
                wait_for_locks(place.out)
                state = (origin is self.before, state_of(place))
                if run.code == -9 and state in seen:  # the same files: the same comes of it
                    shutil.rmtree(place.root)
                    continue
                seen.add(state)
                self.look(tally, place, before, where)
                self.finish(tally, place, where, None if run.code == -9 else run)

    def random_moments(self, tally: Tally, times: int, processes: bool = False) -> None:
        """Killed at random moments, several times in a row; then it runs to its end."""
        random_ = random.Random(f"{self.name} {tally.part} {self.seed}")
        startup = 0.0
        if processes:
            place = self.copy(self.empty)
            words = self.command.words(str(self.inputs), False)
            run = start_process(self.command.program, words, place)
            run.wait(ready=self.command.program.ready)
            startup = max(0.0, time.monotonic() - run.began - self.seconds[0])
            self.finish(tally, place, "a whole process", run)
        while tally.trials < times:
            earlier = random_.random() < 0.5
            place = self.copy(self.before if earlier else self.empty)
            ended = False
            for link in range(LONGEST_CHAIN):
                run, where = self.one_moment(random_, place, earlier, startup, processes)
                where = f"seed {self.seed}, kill {tally.trials + 1}, the {link + 1}. here, {where}"
                ended = run.code != -9
                if ended:
                    self.finish(tally, place, where, run)
                    break
                tally.trials += 1
                self.look(tally, place, self.names_before, where)
                if tally.trials >= times:
                    break
            if not ended:
                self.finish(tally, place, f"after {where}")

    def one_moment(
        self, random_: random.Random, place: Place, earlier: bool, startup: float, processes: bool
    ) -> tuple[Run, str]:
        """A run that is killed at a moment, if it lasts so long."""
        self.names_before = self.command.files(place)
        at = random_.uniform(0.0, 1.05 * (startup + self.seconds[earlier]))
        count, pause = random_.randint(1, self.changes[earlier]), random_.uniform(0.0, PAUSE)
        aimed, watch = random_.random() < 0.5 and self.command.writes, Watch(place)
        begin: Callable[..., Run] = start_process if processes else start_fork
        run = begin(self.command.program, self.command.words(str(self.inputs), False), place)
        if aimed:
            run.wait(lambda: watch.changed() >= count, ready=self.command.program.ready)
            time.sleep(pause)
            where = f"{1000 * pause:.1f} ms after change {count}"
        else:
            run.wait(lambda: time.monotonic() - run.began >= at, ready=self.command.program.ready)
            where = f"after {at:.3f} s"
        run.kill()
        return run, where


class Watch:
    """Sees the files of a place come, go and change, by looking at them again and again."""

    def __init__(self, place: Place) -> None:
        self.folders, self.count = (place.out, place.temporary), 0
        self.last = self._state()

    def changed(self) -> int:
        """How often something has changed, as far as that was seen."""
        now = self._state()
        self.count, self.last = self.count + (now != self.last), now
        return self.count

    def never(self) -> bool:
        """Looks, and says False."""
        return self.changed() < 0

    def _state(self) -> dict[str, tuple[int, int]]:
        found, waiting = dict[str, tuple[int, int]](), [str(folder) for folder in self.folders]
        while waiting:
            with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    status = entry.stat(follow_symlinks=False)
                    found[entry.path] = (status.st_mtime_ns, status.st_size)
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
        return found


def wait_for_locks(folder: Path, seconds: float = 60.0) -> None:
    """Wait until what a killed run has started, and what holds its folder, has ended."""
    end = time.monotonic() + seconds
    for path in folder.rglob("lock"):
        while time.monotonic() < end:
            with path.open("rb") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    time.sleep(0.01)


def digest_of(path: Path) -> str:
    """The SHA-256 of a file, or of the names and contents of a folder's."""
    total = hashlib.sha256()
    for inside in sorted(path.rglob("*")) if path.is_dir() else [path]:
        total.update(f"{inside.relative_to(path)} {inside.is_dir()}".encode())
        if not inside.is_dir():
            total.update(hashlib.sha256(inside.read_bytes()).digest())
    return total.hexdigest()


def state_of(place: Place) -> str:
    """The SHA-256 of all files, without what is random in their names."""
    total, names = hashlib.sha256(), re.compile(r"(\.|convattn-verify-)[a-z0-9_]{8}(?=\.part|/|$)")
    for folder in (place.out, place.temporary):
        for path in sorted(folder.rglob("*")):
            name = names.sub(r"\1", str(path.relative_to(folder)))
            total.update(f"{name} {path.is_dir()} ".encode())
            if not path.is_dir() and path.name != "lock":  # which holds the number of a process
                total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()
