"""The command line of an experiment: its settings as options, a folder, exit codes."""

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
        from convattn.lab.runs.arguments import repeating_command, run_folder
        from convattn.lab.runs.directory import RESULT, read_json
        from convattn.lab.runs.launch import run_experiment
        from convattn.lab.training.failures import NonFiniteLoss
        from convattn.lab.training.hosts import one_process_alone

        out = console()
        folder = given.output_dir or run_folder(Path(self.program).stem)
        command = repeating_command(words, program=self.program)
        try:
            one_process_alone(self.program)
            experiment = self.make(given.settings)
            outcome = run_experiment(experiment, folder, command=command, console=out)
        except NonFiniteLoss as failure:
            print(f"{self.program}: {failure}", file=sys.stderr)
            return FAILED
        if outcome.status == "stopped":
            again = shlex.join(["--output-dir", str(folder)])
            out.print(f"go on with: {command} {again}")
            return SUCCESS
        for line in self.report(read_json(folder / RESULT)):
            out.print(line)
        return SUCCESS


def list_configs(configs: Path) -> int:
    """Print every config with its title and the paper's item."""
    from rich.table import Table

    from convattn.cli.output import console
    from convattn.lab.runs.configs import find_configs

    table = Table("config", "what it trains", "what it repeats")
    for config in find_configs(configs).values():
        table.add_row(config.name, config.title, config.repeats)
    console().print(table)
    return SUCCESS
