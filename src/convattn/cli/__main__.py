"""The command line: ``convattn verify``, ``prove``, ``check``, ``convert`` and so on.

Exit codes: those of `convattn.cli.running`, and 3 where `prove` finds no Coq.
"""

import sys
from collections.abc import Sequence

from convattn.cli.interruption import loading_can_be_interrupted

COMMANDS = {
    "verify": "convattn.cli.verify:Verify",
    "prove": "convattn.cli.prove:Prove",
    "check": "convattn.cli.check:Check",
    "audit": "convattn.cli.audit:Audit",
    "convert": "convattn.cli.convert:Convert",
    "convert network": "convattn.cli.network:ConvertNetwork",
    "diagnose": "convattn.cli.diagnose:Diagnose",
    "explore": "convattn.cli.explore:Explore",
    "heads": "convattn.cli.heads:Heads",
    "ledger": "convattn.cli.ledger:Ledger",
}
DESCRIPTION = (
    "An executable proof companion for 'self-attention can express convolution'. "
    "convattn --version prints the version."
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        arguments: The words after ``convattn``; those of this process if ``None``.

    Returns:
        The exit code.
    """
    words = sys.argv[1:] if arguments is None else list(arguments)
    command = " ".join(["convattn", *words[:1]])
    with loading_can_be_interrupted(command):
        from convattn.cli.running import guarded

        return guarded(command, lambda: _run(words))


def _run(words: list[str]) -> int:
    from convattn.cli.running import SUCCESS, dispatch

    if words == ["--version"]:
        from convattn import __version__

        print(f"convattn {__version__}")
        return SUCCESS
    return dispatch(words, COMMANDS, "convattn", DESCRIPTION)


if __name__ == "__main__":
    sys.exit(main())
