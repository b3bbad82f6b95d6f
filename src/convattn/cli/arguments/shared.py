"""Options that several commands have."""

from pathlib import Path
from typing import Annotated

from tyro.conf import arg

from convattn.cli.usage import UsageError

Json = Annotated[
    Path | None,
    arg(name="json", metavar="FILE", help="Write the figures as JSON.", help_behavior_hint=""),
]
Proofs = Annotated[
    Path | None,
    arg(
        metavar="DIR",
        help="Proofs <paper>/<name>.py; default: those of the checkout or wheel.",
        help_behavior_hint="",
    ),
]
Sizes = tuple[int, ...]


def require_seed(seed: int) -> None:
    """Refuse a negative seed."""
    if seed < 0:
        raise UsageError(f"--seed got {seed}, but expected an integer ≥ 0")


def one_or_all(values: Sizes) -> int | Sizes:
    """One number alone, or all of them."""
    return values[0] if len(values) == 1 else values


def sizes_of(values: Sizes, option: str) -> int | Sizes:
    """One or two positive integers, or a `UsageError` that names the option."""
    if len(values) not in (1, 2) or min(values) < 1:
        raise UsageError(f"{option} got {values}, but expected one or two positive integers")
    return one_or_all(values)
