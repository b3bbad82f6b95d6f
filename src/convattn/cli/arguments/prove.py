"""``convattn prove``: its options."""

from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from convattn.cli.arguments.shared import Proofs


def prove(
    files: Annotated[
        Positional[tuple[Path, ...]],
        arg(
            metavar="FILES",
            help="Files of theorems such as sharpened/finite.v; default: all. Only a run over all "
            "writes report.json.",
            help_behavior_hint="",
        ),
    ] = (),
    coq: Annotated[
        Path | None,
        arg(
            metavar="DIR",
            help="Sources <paper>/<name>.v; default: proofs/coq of the checkout.",
            help_behavior_hint="",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        arg(
            metavar="DIR",
            help="Where to compile, and where report.json is written; default: build/prove of the "
            "checkout, where convattn verify looks for it.",
            help_behavior_hint="",
        ),
    ] = None,
    jobs: Annotated[
        int | None,
        arg(
            metavar="N", help="Files at a time; default: one for each core.", help_behavior_hint=""
        ),
    ] = None,
    json: Annotated[
        Path | None,
        arg(
            name="json",
            metavar="FILE",
            help="Write the report here too; - for standard output.",
            help_behavior_hint="",
        ),
    ] = None,
    table: Annotated[
        Path | None,
        arg(
            metavar="FILE",
            help="Compile nothing; bring the table in this document up to date (- prints it).",
            help_behavior_hint="",
        ),
    ] = None,
    proofs: Proofs = None,
) -> int:
    """Check the machine-checked proofs with Coq, and that the claims name them.

    Exits 0 if all is proved, 1 if not, 2 on wrong use, 3 without Coq or a library of its.
    """
    from convattn.cli.prove import prove as command

    return command(files, coq, output, jobs, proofs, table, json)
