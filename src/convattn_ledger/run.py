"""What a check is given, and the two ways in which it can say that it has not passed."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numpy.random import Generator


class EvidenceFailed(Exception):
    """Raised by a check: the evidence was sought and it speaks against the claim."""


def require(condition: object, otherwise: str) -> None:
    """Go on if the condition holds.

    Raises:
        EvidenceFailed: With that text, if it does not.
    """
    if not condition:
        raise EvidenceFailed(otherwise)


class NotRunHere(Exception):
    """Raised by a check that cannot run on this machine (no accelerator, no proof assistant, ...).

    The evidence is then reported as neither passed nor failed, and it satisfies nothing.
    """


@dataclass(frozen=True)
class Run:
    """The circumstances under which one piece of evidence is checked.

    Attributes:
        seed: The seed of the whole verification.
        quick: Whether only quick evidence is being run; a check may take fewer cases then.
        certificates: The directory of the committed certificates.
        claim: The id of the claim that the evidence belongs to.
        evidence: The name of the evidence within its claim.
    """

    seed: int
    quick: bool
    certificates: Path
    claim: str = ""
    evidence: str = ""

    def rng(self, *salt: int | str) -> "Generator":
        """A generator that depends on the seed, the claim, the evidence and the salt alone.

        Neither the order in which evidence runs nor the number of workers changes the draws.

        Args:
            *salt: Integers or strings that tell several generators of one check apart.

        Raises:
            TypeError: If a part of the salt is neither an integer nor a string.

        Example:
            >>> run = Run(0, False, Path("certificates"), "S.finite", "exact")
            >>> bool(run.rng("kernel").integers(100) == run.rng("kernel").integers(100))
            True
            >>> first, second = run.rng(1).integers(2**63), run.rng("1").integers(2**63)
            >>> bool(first == second)
            False
        """
        import numpy

        for part in salt:
            if not isinstance(part, int | str):
                raise TypeError(
                    f"Run.rng got {part!r} of type {type(part).__name__} as salt, "
                    "but expected integers and strings"
                )
        identity = json.dumps([self.seed, self.claim, self.evidence, *salt])
        digest = hashlib.sha256(identity.encode()).digest()
        return numpy.random.default_rng(int.from_bytes(digest, "big"))
