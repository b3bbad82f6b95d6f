"""``convattn verify``, ``check``, ``audit`` and ``ledger``: their options."""

from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, UseAppendAction, arg

from convattn.cli.arguments.shared import (
    Json,
    Proofs,
    require_seed,
)


def verify(
    claim: Annotated[
        UseAppendAction[tuple[str, ...]],
        arg(metavar="ID", help="Only this claim, or those matching a pattern such as 'C20.*'."),
    ] = (),
    level: Annotated[
        UseAppendAction[tuple[str, ...]],
        arg(
            metavar="LEVEL",
            help="Only evidence of this level: PROVED, CERTIFIED, ENCLOSED, BOUNDED, TESTED or "
            "MEASURED; claims without any are left out.",
        ),
    ] = (),
    quick: Annotated[
        bool, arg(help="Only evidence that is marked quick.", help_behavior_hint="")
    ] = False,
    seed: Annotated[int, arg(help="The seed of everything that is drawn.")] = 0,
    jobs: Annotated[
        int | None,
        arg(
            metavar="N",
            help="Worker processes; default: one for each core. A TPU allows 1.",
            help_behavior_hint="",
        ),
    ] = None,
    timeout: Annotated[
        float | None,
        arg(
            metavar="SECONDS", help="Give each piece of evidence this long.", help_behavior_hint=""
        ),
    ] = None,
    json: Json = None,
    proofs: Proofs = None,
    certificates: Annotated[
        Path | None,
        arg(
            metavar="DIR", help="Certificates; default: the committed ones.", help_behavior_hint=""
        ),
    ] = None,
) -> int:
    """Run the evidence for the claims and print the ledger's state.

    Exits 0 if every selected claim is verified, 1 if one is not, 2 on wrong use.
    """
    from convattn.cli.verify import verify as command

    require_seed(seed)
    return command(claim, level, quick, seed, jobs, timeout, proofs, certificates, json)


def check(
    files: Annotated[
        Positional[tuple[Path, ...]],
        arg(
            metavar="FILES",
            help="Certificates; default: all the committed ones.",
            help_behavior_hint="",
        ),
    ] = (),
    ignore_digests: Annotated[
        bool,
        arg(help="Leave the digests alone and let the mathematics convict.", help_behavior_hint=""),
    ] = False,
    json: Json = None,
) -> int:
    """Give certificates to the independent checker.

    Exits 0 if all are accepted, 1 if one is rejected, 2 on wrong use.
    """
    from convattn.cli.check import check as command

    return command(files, ignore_digests, json)


def audit(json: Json = None) -> int:
    """Show what this device's arithmetic really does."""
    from convattn.cli.audit import audit as command

    return command(json)


def ledger(
    output: Annotated[
        Path | None,
        arg(
            metavar="FILE",
            help="Write to this file; default: standard output.",
            help_behavior_hint="",
        ),
    ] = None,
    proofs: Proofs = None,
) -> int:
    """Print the ledger as Markdown without running anything."""
    from convattn.cli.ledger import ledger as command

    return command(proofs, output)
