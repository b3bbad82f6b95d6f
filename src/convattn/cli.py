"""The command line: ``convattn verify``, ``check``, ``audit``, ``convert`` and ``ledger``.

Exit codes: 0 for success, 1 for a failed verification, 2 for wrong use (with one message), 70 for
a defect in this program, 130 when interrupted.
"""

import os
import sys
import traceback
from collections.abc import Sequence

SUCCESS, WRONG_USE, DEFECT, INTERRUPTED = 0, 2, 70, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        arguments: The words after ``convattn``; those of this process if ``None``.

    Returns:
        The exit code.
    """
    words = sys.argv[1:] if arguments is None else list(arguments)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # an ASCII terminal must not end a run
    from convattn.commands.usage import UsageError

    command = " ".join(["convattn", *words[:1]])
    try:
        code = _dispatch(words)
        sys.stdout.flush()
        return code
    except UsageError as error:
        print(f"{command}: {error}", file=sys.stderr)
        return WRONG_USE
    except KeyboardInterrupt:
        print(f"{command}: interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return SUCCESS
    except OSError as error:
        print(f"{command}: {error}", file=sys.stderr)
        return WRONG_USE
    except Exception as error:
        if os.environ.get("CONVATTN_TRACEBACK"):
            traceback.print_exc()
        print(
            f"{command}: a defect in convattn, please report it: {error!r} "
            "(set CONVATTN_TRACEBACK=1 to see where)",
            file=sys.stderr,
        )
        return DEFECT


def _dispatch(words: list[str]) -> int:
    if words == ["--version"]:
        from convattn import __version__

        print(f"convattn {__version__}")
        return SUCCESS
    import tyro

    from convattn.commands.arguments import COMMANDS

    try:
        return tyro.extras.subcommand_cli_from_dict(
            COMMANDS,
            prog="convattn",
            description="An executable proof companion for 'self-attention can express "
            "convolution'. convattn --version prints the version.",
            args=words,
            config=(tyro.conf.FlagCreatePairsOff,),
        )
    except SystemExit as exit_:
        return exit_.code if isinstance(exit_.code, int) else WRONG_USE


if __name__ == "__main__":
    sys.exit(main())
