"""`Processes`: those that train one model together, and how they agree.

JAX runs one program in all of them, and waits in it until all have come to the same place. So
whatever decides what comes next must be the same in each: what a clock, a signal or a disk says in
one of them is told to all. They say it over connections of their own to the first process, and the
same connections tell when a process fails or is lost; JAX alone would let the others wait.
"""

import json
from typing import Any

import numpy as np

from convattn.lab.training.failures import ProcessesDiffer
from convattn.lab.training.hosts.broadcast import broadcast_arrays
from convattn.lab.training.hosts.link import Link
from convattn.lab.training.hosts.peers import Peers
from convattn.lab.training.hosts.rendezvous import name_of_this_process


class Processes:
    """The processes of a run, as one of them sees them.

    Args:
        index: Of this one.
        links: To the others, by their index: from the first process to every other one, and from
            every other one to the first; none if there is but one process.

    >>> Processes().agree("step", 7)
    [7]
    """

    def __init__(
        self, index: int = 0, count: int = 1, links: dict[int, Link] | None = None
    ) -> None:
        self.index, self.count = index, count
        self._peers: Peers | None = None
        self._all_know = False
        if links:
            self._peers = Peers(index, count, links)
            name = f"process {index} of {count} ({name_of_this_process()})"
            self._peers.names = self.agree("name", name)

    @property
    def first(self) -> bool:
        """Whether this is the one that reads and writes the folder of the run."""
        return self.index == 0

    def resume_with(self, advice: str) -> None:
        """What to do when a process was lost, for the message."""
        if self._peers is not None:
            self._peers.resume_with(advice)

    def agree(self, topic: str, value: Any) -> list[Any]:
        """What every process says, in their order; returns when all have said it.

        Args:
            topic: What it is about: the same in all, or they have lost each other.
            value: Anything that JSON holds.

        Raises:
            OtherProcessFailed: If one has failed instead.
        """
        peers = self._peers
        if peers is None:
            return [value]
        said = {"kind": "said", "topic": topic, "value": value}
        if not self.first:
            peers.send(0, said)
            return peers.receive(0, topic)["value"]
        own = json.loads(json.dumps(value))  # as the others see it
        values = [own, *(peers.receive(other, topic)["value"] for other in peers)]
        for other in peers:
            peers.send(other, {**said, "value": values})
        return values

    def from_first(self, topic: str, value: Any) -> Any:
        """What the first process says."""
        return self.agree(topic, value if self.first else None)[0]

    def compare(self, topic: str, value: dict[str, Any]) -> None:
        """Refuse to go on unless all say the same.

        Raises:
            ProcessesDiffer: In all of them, with the names of what differs.
        """
        values = self.agree(topic, value)
        for index, other in enumerate(values):
            names = [
                name for name in {**values[0], **other} if values[0].get(name) != other.get(name)
            ]
            if names:
                assert self._peers is not None
                self._all_know = True  # each finds the same
                raise ProcessesDiffer(
                    f"{self._peers.names[index]} differs from process 0 in "
                    f"{', '.join(sorted(names))}; give every process the same"
                )

    def hand_out(self, arrays: list[np.ndarray]) -> list[np.ndarray]:
        """The arrays of the first process, bit for bit; the others give some of the same shapes."""
        if self._peers is None:
            return arrays
        self.agree("arrays", None)  # whoever fails before this is heard, and not waited for in JAX
        return broadcast_arrays(arrays)

    def leave(self, problem: BaseException | None) -> str:
        """Part, when all have agreed on the end or this one has failed.

        Returns:
            The failure of another process of which the problem came, if it did.
        """
        return "" if self._peers is None else self._peers.leave(problem, all_know=self._all_know)
