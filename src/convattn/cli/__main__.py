"""The command line: ``convattn verify``, ``prove``, ``check``, ``convert`` and their kind.

Exit codes: 0 for success, 1 for a failed verification, 2 for wrong use (with one message), 3 where
`prove` finds no Coq, 70 for a defect in this program, 130 when interrupted.
"""

import sys
from collections.abc import Sequence

from convattn.cli.guard import SUCCESS, guarded


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        arguments: The words after ``convattn``; those of this process if ``None``.

    Returns:
        The exit code.
    """
    words = sys.argv[1:] if arguments is None else list(arguments)
    return guarded(" ".join(["convattn", *words[:1]]), lambda: _dispatch(words))


def _dispatch(words: list[str]) -> int:
    if words == ["--version"]:
        from convattn import __version__

        print(f"convattn {__version__}")
        return SUCCESS
    import tyro

    from convattn.cli.arguments import COMMANDS

    return tyro.extras.subcommand_cli_from_dict(
        COMMANDS,
        prog="convattn",
        description="An executable proof companion for 'self-attention can express "
        "convolution'. convattn --version prints the version.",
        args=words,
        config=(tyro.conf.FlagCreatePairsOff,),
    )


if __name__ == "__main__":
    sys.exit(main())
