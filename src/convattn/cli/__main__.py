"""The command line: ``convattn verify``, ``prove``, ``check``, ``convert`` and so on.

Exit codes: those of `convattn.cli.running`, and 3 where `prove` finds no Coq.
"""

import sys
from collections.abc import Sequence
from importlib.metadata import entry_points
from importlib.util import find_spec

from convattn.cli.interruption import loading_can_be_interrupted
from convattn.extras import missing

OWN = {
    "convert kernel": "convattn.cli.convert_kernel:ConvertKernel",
    "convert network": "convattn.cli.convert_network:ConvertNetwork",
    "convert back": "convattn.cli.convert_back:ConvertBack",
    "compile": "convattn.cli.compile:Compile",
    "diagnose": "convattn.cli.diagnose:Diagnose",
}
GROUP = "convattn.commands"  # of entry points, by which other packages add commands
DESCRIPTION = (
    "An executable proof companion for 'self-attention can express convolution'. "
    "convattn --version prints the version."
)


def commands() -> dict[str, str]:
    """Every command as `module:Dataclass`: the library's own, then what other packages add.

    Those of packages that are not here, such as the laboratory beside a wheel, are left out.
    """
    added = sorted(entry_points(group=GROUP), key=lambda entry: entry.name)
    return OWN | {
        entry.name: entry.value for entry in added if find_spec(entry.value.partition(".")[0])
    }


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
        try:
            from convattn.cli.running import guarded
        except ModuleNotFoundError as error:
            if not missing(error):
                raise
            print(f"{command}: {missing(error)}", file=sys.stderr)
            return 2

        return guarded(command, lambda: _run(words))


def _run(words: list[str]) -> int:
    from convattn.cli.running import SUCCESS, dispatch

    if words == ["--version"]:
        from convattn import __version__

        print(f"convattn {__version__}")
        return SUCCESS
    known = OWN if words[:1] and words[0] in ("convert", *OWN) else commands()
    return dispatch(words, known, "convattn", DESCRIPTION)


if __name__ == "__main__":
    sys.exit(main())
