"""What the checker answers."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Verdict:
    """The answer on one certificate.

    Attributes:
        accepted: Whether everything was recomputed and found as stated.
        claim: The id of the claim; empty if it could not be read or is not one we know.
        code: Why it was rejected, in one word; empty if it was accepted.
        reason: What was given and what was expected; if accepted, what follows.
        seconds: Time taken.
    """

    accepted: bool
    claim: str
    code: str
    reason: str
    seconds: float
