"""The command line of an experiment: its settings as options, a folder, exit codes."""

import datetime
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from convattn.cli.running import SUCCESS, UsageError, guarded

FAILED = 1


@dataclass(frozen=True)
class ExperimentCommand:
    """A script of experiments/.

    Attributes:
        program: The script, from the root of a checkout.
        arguments: A dataclass with `settings` and `output_dir`; its docstring is the help.
        make: Settings → `Experiment`.
        report: The result → the lines that are printed at the end.
    """

    program: str
    arguments: type[Any]
    make: Callable[[Any], Any]
    report: Callable[[dict[str, Any]], Sequence[str]]

    def main(self, words: Sequence[str] | None = None) -> int:
        """Run it.

        Returns:
            0 if the run is finished, or was stopped by a signal and saved; 1 if it failed; 2 for
            wrong use.
        """
        given = sys.argv[1:] if words is None else list(words)
        return guarded(self.program, lambda: self._run(given))

    def _run(self, words: list[str]) -> int:
        import tyro

        try:
            given = tyro.cli(self.arguments, args=words, prog=f"python {self.program}")
            return self._train(given, words)
        except ValueError as error:
            raise UsageError(str(error)) from error

    def _train(self, given: Any, words: list[str]) -> int:
        from convattn.cli.output import console
        from convattn.lab.runs.arguments import repeating_command
        from convattn.lab.runs.experiment import run_experiment
        from convattn.lab.training.failures import CheckpointNotWritten, NonFiniteLoss

        out, folder = console(), given.output_dir
        if folder is None:
            now = datetime.datetime.now().strftime("%Y%m%d-%H%M%S")
            folder = Path("runs") / f"{Path(self.program).stem}-{now}"
        command = repeating_command(words, program=self.program)
        try:
            experiment = self.make(given.settings)
            outcome, result = run_experiment(experiment, folder, command=command, console=out)
        except (CheckpointNotWritten, NonFiniteLoss) as failure:
            print(f"{self.program}: {failure}", file=sys.stderr)
            return FAILED
        if outcome.status == "stopped":
            again = shlex.join(["--output-dir", str(folder)])
            out.print(f"go on with: {command} {again}")
            return SUCCESS
        for line in self.report(result):
            out.print(line)
        return SUCCESS
