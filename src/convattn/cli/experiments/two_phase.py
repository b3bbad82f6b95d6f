"""The command line of `experiments/two_phase.py`."""

import datetime
import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from convattn.cli.running import SUCCESS, UsageError, guarded
from convattn.lab.runs.configs import find_configs
from convattn.lab.two_phase.arguments import (
    PROGRAM,
    RECORD,
    Arguments,
    ComparisonArguments,
    RecordArguments,
    command_of,
    read_arguments,
    read_record_arguments,
    with_images,
)

FAILED = 1


def main(arguments: Sequence[str] | None = None, *, configs: Path) -> int:
    """Run `experiments/two_phase.py`.

    Args:
        arguments: The words after the program; those of this process if None.
        configs: The folder of configs.

    Returns:
        The exit code: 0 if all is done, or was stopped by a signal and saved; 1 if the converted
        network is not the one that was trained, or a run failed; 2 for wrong use.
    """
    words = sys.argv[1:] if arguments is None else list(arguments)
    return guarded(PROGRAM, lambda: _run(words, configs))


def _run(words: list[str], configs: Path) -> int:
    from convattn.lab.training.failures import CheckpointNotWritten, NonFiniteLoss
    from convattn.lab.training.hosts import one_process_alone
    from convattn.lab.two_phase.conversion_check import ConversionFailed

    try:
        if words[:1] == [RECORD]:
            return record_as_asked(read_record_arguments(words))
        given = read_arguments(words, configs)
        if given.list:
            return list_configs(configs)
        one_process_alone(PROGRAM)
        if isinstance(given, ComparisonArguments):
            return compare_as_asked(given, command_of(words))
        return train_as_asked(given, command_of(words))
    except ValueError as error:
        raise UsageError(str(error)) from error
    except (CheckpointNotWritten, ConversionFailed, NonFiniteLoss) as failure:
        print(f"{PROGRAM}: {failure}", file=sys.stderr)
        return FAILED


def list_configs(configs: Path) -> int:
    """Print every config with its title and the paper's item."""
    from rich.table import Table

    from convattn.cli.output import console

    table = Table("config", "what it trains", "what it repeats")
    for config in find_configs(configs).values():
        table.add_row(config.name, config.title, config.repeats)
    console().print(table)
    return SUCCESS


def folder_of(given: Arguments | ComparisonArguments, what: str) -> Path:
    """The folder that was asked for, or one named after config and time."""
    now = datetime.datetime.now().strftime("%Y%m%d-%H%M%S")
    return given.output_dir or Path("runs") / f"{what}-{given.config}-{now}"


def train_as_asked(given: Arguments, command: str) -> int:
    """Both phases, a summary and pictures."""
    from convattn.cli.output import console
    from convattn.lab.two_phase.directory import TwoPhaseDirectory
    from convattn.lab.two_phase.pipeline import run_two_phase

    out, folder = console(), folder_of(given, "two-phase")
    settings = with_images(given.settings, given)
    summary = run_two_phase(settings, folder, command=command, console=out)
    if summary is None:
        out.print(f"go on with: {command} --output-dir {shlex.quote(str(folder))}")
        return SUCCESS
    if given.figures:
        from convattn.lab.analysis.picture import save_picture
        from convattn.lab.two_phase.curves import draw_phases

        directory = TwoPhaseDirectory(folder)
        figure = draw_phases(directory.phase_one, directory.phase_two, title_of(summary))
        for picture in save_picture(figure, directory.figures, "phases"):
            out.print(f"figure: {picture}")
    test = summary["conversion"]["test"]
    out.print(f"test accuracy after phase one {percent(summary['phase_one'])}")
    out.print(f"test accuracy before phase two {100 * test['after']:.1f} %")
    out.print(f"test accuracy {percent(summary['phase_two'])}")
    return SUCCESS


def compare_as_asked(given: ComparisonArguments, command: str) -> int:
    """All the runs, and the tables and pictures of those that there are."""
    from convattn.cli.output import console
    from convattn.files import write_file
    from convattn.lab.two_phase.comparison import ComparisonDirectory, compare
    from convattn.lab.two_phase.comparison_table import comparison_rows, gradient_rows, markdown
    from convattn.lab.two_phase.directory import write_json

    out, folder = console(), folder_of(given, "comparison")
    settings = replace(given.comparison, pipeline=with_images(given.comparison.pipeline, given))
    done = compare(settings, folder, command=command, console=out)
    directory = ComparisonDirectory(folder)
    rows, gradients = comparison_rows(settings, directory), gradient_rows(settings, directory)
    write_json(folder / "table.json", {"command": command, "rows": rows, "gradients": gradients})
    text = markdown(rows, gradients, len(settings.seeds))
    write_file(folder / "table.md", text.encode())
    if given.figures:
        from convattn.lab.two_phase.comparison_pictures import draw_comparison

        for picture in draw_comparison(settings, directory):
            out.print(f"figure: {picture}")
    out.print(text, markup=False)
    if not done:
        out.print(f"go on with: {command} --output-dir {shlex.quote(str(folder))}")
    return SUCCESS


def record_as_asked(given: RecordArguments) -> int:
    """Put the runs of a seed on record for the ledger, or say why they cannot back its row."""
    from convattn.lab.records.pipeline_evidence import CLAIM, pipeline_verdict
    from convattn.lab.records.pipeline_record import write_pipeline_record

    path, found = write_pipeline_record(given.folder, replace=given.replace)
    print(f"{path}\nit bears out the verdict: {pipeline_verdict(found)}")
    print(f"now: convattn verify --claim {CLAIM}")
    return SUCCESS


def title_of(summary: dict[str, Any]) -> str:
    """The lines above the picture of a pipeline."""
    conversion, two = summary["conversion"], summary["phase_two"]
    how = conversion["conversion"]
    kind = f"limit, M = {how['logit']:g}" if how["kind"] == "limit" else f"exact, ε = {how['leak']}"
    return (
        f"both phases; conversion: {kind}, {how['heads']} heads\n"
        f"test accuracy {percent(summary['phase_one'])}, converted "
        f"{100 * conversion['test']['after']:.1f} %, at the end {percent(two)}; {two['images']}"
    )


def percent(phase: dict[str, Any]) -> str:
    """The accuracy of a phase with its counts.

    >>> percent({"test_accuracy": 0.5, "test_images": 500})
    '50.0 % (250 of 500)'
    """
    share, count = phase["test_accuracy"], phase["test_images"]
    return f"{100 * share:.1f} % ({round(share * count)} of {count})"
