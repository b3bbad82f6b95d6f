"""`Processes`: those that train one model together, and how they agree.

JAX runs one program in all of them, and waits in it until all have come to the same place. So
whatever decides what comes next must be the same in each: what a clock, a signal or a disk says in
one of them is told to all. They say it over connections of their own to the first process, and the
same connections tell when a process fails or is lost; JAX alone would let the others wait.
"""

import os
import queue
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import jax
import numpy as np

from convattn.training.failures import OtherProcessFailed, ProcessesDiffer
from convattn.training.last_word import LastWord
from convattn.training.link import Link, LinkLost, Message
from convattn.training.meeting import meet, name_of_this_process

LOST = 1  # the exit code of a process that ends because another was lost
PAUSE = 2.0  # seconds in which a lost process is noticed, and a failed one's word arrives
GRACE = 10.0  # seconds for a process to come out of JAX by itself when another has failed
AGAIN = "start all of them again in the same folder: training goes on from its newest checkpoint"


class Processes:
    """The processes of a run, as one of them sees them.

    **Arguments:**

    - `index`: of this one.
    - `links`: to the others, by their index: from the first process to every other one, and from
      every other one to the first; none if there is but one process.

    >>> Processes().agree("step", 7)
    [7]
    """

    def __init__(
        self, index: int = 0, count: int = 1, links: dict[int, Link] | None = None
    ) -> None:
        self.index, self.count, self._links = index, count, links or {}
        self.again, self.failure, self._leaving, self._all_know = AGAIN, "", False, False
        self._heard: dict[int, queue.SimpleQueue[Message]] = {}
        self._ended = {other: threading.Event() for other in self._links}
        self._last_word: LastWord | None = None
        self._names = [f"process {number}" for number in range(count)]
        if self._links:
            self._last_word = LastWord(self._ended_from_outside())
            for other, link in self._links.items():
                self._heard[other] = queue.SimpleQueue()
                link.attend(self._hear(other), self._end(other))
            self._names = self.agree(
                "name", f"process {index} of {count} ({name_of_this_process()})"
            )

    @property
    def first(self) -> bool:
        """Whether this is the one that reads and writes the folder of the run."""
        return self.index == 0

    def resume_with(self, advice: str) -> None:
        """What to do when a process was lost, for the message."""
        self.again = advice
        if self._last_word is not None:
            self._last_word.change(self._ended_from_outside())

    def agree(self, topic: str, value: Any) -> list[Any]:
        """What every process says, in their order; returns when all have said it.

        **Arguments:**

        - `topic`: what it is about: the same in all, or they have lost each other.
        - `value`: anything that JSON holds.

        **Raises:** `OtherProcessFailed` if one has failed instead.
        """
        said = {"kind": "said", "topic": topic, "value": value}
        if not self._links:
            return [value]
        if not self.first:
            self._send(0, said)
            return self._next(0, topic)["value"]
        values = [value, *(self._next(other, topic)["value"] for other in sorted(self._links))]
        for other in self._links:
            self._send(other, {**said, "value": values})
        return values

    def from_first(self, topic: str, value: Any) -> Any:
        """What the first process says."""
        return self.agree(topic, value if self.first else None)[0]

    def compare(self, topic: str, value: dict[str, Any]) -> None:
        """Refuse to go on unless all say the same.

        **Raises:** `ProcessesDiffer`, in all of them, with the names of what differs.
        """
        values = self.agree(topic, value)
        for index, other in enumerate(values):
            names = [
                name for name in {**values[0], **other} if values[0].get(name) != other.get(name)
            ]
            if names:
                self._all_know = True  # each finds the same, and nobody need be told
                raise ProcessesDiffer(
                    f"{self._names[index]} differs from process 0 in {', '.join(sorted(names))}; "
                    "give every process the same"
                )

    def hand_out(self, arrays: list[np.ndarray]) -> list[np.ndarray]:
        """The arrays of the first process, bit for bit; the others give some of the same shapes."""
        if not self._links:
            return arrays
        self.agree("arrays", None)  # whoever fails before this is heard, and not waited for in JAX
        from jax.experimental import multihost_utils

        # As bytes: JAX adds up what all give, and 0.0 + -0.0 is not -0.0.
        given = [np.frombuffer(array.tobytes(), np.uint8) for array in arrays if array.size]
        found = iter(multihost_utils.broadcast_one_to_all(given))
        return [
            np.frombuffer(next(found).astype(np.uint8).tobytes(), array.dtype).reshape(array.shape)
            if array.size
            else array
            for array in arrays
        ]

    def _send(self, other: int, message: Message) -> None:
        try:
            self._links[other].send(message)
        except LinkLost as problem:
            self._lost(other, str(problem))

    def _next(self, other: int, topic: str) -> Message:
        message = self._heard[other].get()
        if message["kind"] == "failed":
            raise OtherProcessFailed(message["problem"])
        if message["topic"] != topic:
            raise ProcessesDiffer(
                f"{self._names[other]} is at {message['topic']!r} and this one at {topic!r}: they "
                "do not run the same; give every process the same"
            )
        return message

    def _hear(self, other: int) -> Any:
        def hear(message: Message) -> None:
            if message["kind"] == "failed":
                self._fail(message, other)
            elif message["kind"] == "lost":
                self._say_and_exit(message["problem"])
            else:
                self._heard[other].put(message)

        return hear

    def _end(self, other: int) -> Any:
        def end(problem: str | None) -> None:
            self._ended[other].set()
            if problem is not None:
                self._lost(other, problem)
            else:  # whoever still waits for a word of it waits no longer
                gone = {"kind": "failed", "problem": f"{self._names[other]} has ended"}
                self._heard[other].put(gone)

        return end

    def _fail(self, message: Message, teller: int) -> None:
        """Another process has failed: this one ends too, at the latest after a while."""
        if self._leaving or self.failure:
            return
        self.failure = message["problem"]
        assert self._last_word is not None
        self._last_word.change(f"convattn: {self.failure}; process {self.index} ends too")
        for other in self._links:
            if other != teller:
                self._send(other, message)
            self._heard[other].put(message)
        timer = threading.Timer(GRACE, lambda: None if self._leaving else self._exit())
        timer.daemon = True
        timer.start()

    def _lost(self, other: int, problem: str) -> None:
        if self._leaving or self.failure:
            return
        told = (
            f"convattn: {self._names[other]} was lost ({problem}), and the others end too; "
            f"{self.again}"
        )
        for rest in self._links:
            if rest != other:
                try:
                    self._links[rest].send({"kind": "lost", "problem": told})
                except LinkLost:
                    continue
        self._say_and_exit(told)

    def _say_and_exit(self, told: str) -> None:
        assert self._last_word is not None
        self._last_word.change(told)
        self._exit()

    def _exit(self) -> None:
        """At once: the main thread may be waiting in JAX for the process that is gone."""
        assert self._last_word is not None
        self._last_word.say()
        os._exit(LOST)

    def _ended_from_outside(self) -> str:
        return (
            f"convattn: process {self.index} of {self.count} ({name_of_this_process()}) was ended "
            "from outside: killed, out of memory, or by JAX because another process was lost; "
            f"{self.again}"
        )

    def leave(self, problem: BaseException | None) -> None:
        """Part, when all have agreed on the end or this one has failed."""
        if isinstance(problem, jax.errors.JaxRuntimeError | ValueError):
            time.sleep(PAUSE)  # if it came of a lost process, that is about to be known
        self._leaving = True
        if problem is not None and not (self._all_know or isinstance(problem, OtherProcessFailed)):
            reason = " ".join(str(problem).split()) or type(problem).__name__
            for other in self._links:
                failed = {
                    "kind": "failed",
                    "problem": f"{self._names[self.index]} failed: {reason}",
                }
                try:
                    self._links[other].send(failed)
                except LinkLost:
                    continue
        for link in self._links.values():
            link.close()
        until = time.monotonic() + 1.5 * GRACE
        for ended in self._ended.values():
            ended.wait(max(0.0, until - time.monotonic()))
        assert self._last_word is not None
        if not isinstance(problem, OtherProcessFailed):  # whose message is said at the very end
            self._last_word.goodbye()


@contextmanager
def joined_processes() -> Iterator[Processes]:
    """The processes that `jax.distributed.initialize` has brought together; else this one alone.

    What one of them raises inside ends all: `OtherProcessFailed` is raised in the others, or, where
    one is waiting in JAX, it ends with exit code 1 and the message. If one is lost, the others end
    so at once.
    """
    if jax.process_count() == 1:
        yield Processes()
        return
    index, count = jax.process_index(), jax.process_count()
    processes = Processes(index, count, meet(index, count))
    try:
        yield processes
        processes.agree("end", None)
    except BaseException as problem:
        told_of = processes.failure
        processes.leave(problem)
        if told_of and not isinstance(problem, OtherProcessFailed):
            raise OtherProcessFailed(told_of) from problem
        raise
    processes.leave(None)
