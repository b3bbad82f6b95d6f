"""`Peers`: the other processes of a run, and what happens when one of them fails or is lost.

A process that fails tells the others, which raise `OtherProcessFailed` where they next wait for it.
One that is lost has told nothing: whoever notices ends at once, for its main thread may be waiting
in JAX for the one that is gone, and would wait for ever.
"""

import os
import queue
import threading
import time
from collections.abc import Callable, Iterator

import jax

from convattn.lab.training.failures import OtherProcessFailed, ProcessesDiffer
from convattn.lab.training.hosts.link import Link, LinkLost, Message
from convattn.lab.training.hosts.rendezvous import name_of_this_process
from convattn.lab.training.hosts.watchdog import Watchdog

LOST = 1  # the exit code of a process that ends because another was lost
PAUSE = 2.0  # seconds in which a lost process is noticed, and a failed one's word arrives
GRACE = 10.0  # seconds for a process to come out of JAX by itself when another has failed
AGAIN = "start all of them again in the same folder: training goes on from its newest checkpoint"


class Peers:
    """The others, as one process sees them.

    Args:
        index: Of this one, of `count`.
        links: To the others, by their index; they are attended from now on.
    """

    def __init__(self, index: int, count: int, links: dict[int, Link]) -> None:
        self.names = [f"process {number}" for number in range(count)]
        self.failure = ""
        self._index, self._count, self._links = index, count, links
        self._again, self._leaving = AGAIN, False
        self._heard: dict[int, queue.SimpleQueue[Message]] = {
            other: queue.SimpleQueue() for other in links
        }
        self._ended = {other: threading.Event() for other in links}
        self._watchdog = Watchdog(self._ended_from_outside())
        for other, link in links.items():
            link.attend(self._hear(other), self._end(other))

    def __iter__(self) -> Iterator[int]:
        return iter(sorted(self._links))

    def resume_with(self, advice: str) -> None:
        """What to do when a process was lost, for the message."""
        self._again = advice
        if not self.failure:  # which is the word to be said, once there is one
            self._watchdog.change(self._ended_from_outside())

    def send(self, other: int, message: Message) -> None:
        """Tell one of them; if it is gone, this process ends."""
        try:
            self._links[other].send(message)
        except LinkLost as problem:
            self._lost(other, str(problem))

    def receive(self, other: int, topic: str) -> Message:
        """What one of them says next.

        Raises:
            OtherProcessFailed: If it, or a third one, has failed instead; `ProcessesDiffer` if it
                speaks of something else.
        """
        message = self._heard[other].get()
        if message["kind"] == "failed":
            raise OtherProcessFailed(message["problem"])
        if message["topic"] != topic:
            raise ProcessesDiffer(
                f"{self.names[other]} is at {message['topic']!r} and this one at {topic!r}: they "
                "do not run the same; give every process the same"
            )
        return message

    def leave(self, problem: BaseException | None, *, all_know: bool = False) -> str:
        """Part, when all have agreed on the end or this one has failed.

        Args:
            all_know: Each has found the same problem, and nobody need be told.

        Returns:
            The failure of another process of which the problem came; it has been said.
        """
        cause = str(problem) if isinstance(problem, OtherProcessFailed) else self.failure
        if isinstance(problem, jax.errors.JaxRuntimeError | ValueError) and not all_know:
            time.sleep(PAUSE)  # if it came of another process, that is about to be known
        if isinstance(problem, jax.errors.JaxRuntimeError):
            cause = self.failure
        self._leaving = True
        if problem is not None and not (all_know or cause):
            reason = " ".join(str(problem).split()) or type(problem).__name__
            failed = f"{self.names[self._index]} failed: {reason}"
            self._tell({"kind": "failed", "problem": failed})
        for link in self._links.values():
            link.close()
        until = time.monotonic() + 1.5 * GRACE
        for ended in self._ended.values():
            ended.wait(max(0.0, until - time.monotonic()))
        if problem is None or not cause:
            self._watchdog.goodbye()
            return ""
        self._watchdog.change(self._ended_by(cause))
        self._watchdog.say()
        return cause

    def _hear(self, other: int) -> Callable[[Message], None]:
        def hear(message: Message) -> None:
            if message["kind"] == "failed":
                self._fail(message, other)
            elif message["kind"] == "lost":
                self._say_and_exit(message["problem"])
            else:
                self._heard[other].put(message)

        return hear

    def _end(self, other: int) -> Callable[[str | None], None]:
        def end(problem: str | None) -> None:
            self._ended[other].set()
            if problem is not None:
                self._lost(other, problem)
            else:  # whoever still waits for a word of it waits no longer
                gone = {"kind": "failed", "problem": f"{self.names[other]} has ended"}
                self._heard[other].put(gone)

        return end

    def _fail(self, message: Message, teller: int) -> None:
        """Another process has failed: this one ends too, at the latest after a while."""
        if self._leaving or self.failure:
            return
        self.failure = message["problem"]
        self._watchdog.change(self._ended_by(self.failure))
        self._tell(message, teller)
        for heard in self._heard.values():
            heard.put(message)
        timer = threading.Timer(GRACE, lambda: None if self._leaving else self._exit())
        timer.daemon = True
        timer.start()

    def _lost(self, other: int, problem: str) -> None:
        if self._leaving or self.failure:
            return
        told = (
            f"convattn: {self.names[other]} was lost ({problem}), and the others end too; "
            f"{self._again}"
        )
        self._tell({"kind": "lost", "problem": told}, other)
        self._say_and_exit(told)

    def _tell(self, message: Message, but: int | None = None) -> None:
        """All of them but one; who is gone hears nothing."""
        for other, link in self._links.items():
            if other != but:
                try:
                    link.send(message)
                except LinkLost:
                    continue

    def _say_and_exit(self, told: str) -> None:
        self._watchdog.change(told)
        self._exit()

    def _exit(self) -> None:
        """At once: the main thread may be waiting in JAX for the process that is gone."""
        self._watchdog.say()
        os._exit(LOST)

    def _ended_by(self, failure: str) -> str:
        return f"convattn: {failure}; process {self._index} ends too"

    def _ended_from_outside(self) -> str:
        return (
            f"convattn: process {self._index} of {self._count} ({name_of_this_process()}) was "
            "ended from outside: killed, out of memory, or by JAX because another process was lost "
            f"or has the same index; {self._again}"
        )
