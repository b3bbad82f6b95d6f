"""The command line of `experiments/two_phase.py`."""

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import tyro

from convattn.cli.running import FAILED, SUCCESS, UsageError, guarded
from convattn_lab.commands.experiment import (
    Sources,
    chosen_config,
    list_configs,
    repeating_command,
    run_folder,
    with_images,
)
from convattn_lab.two_phase.settings import ComparisonSettings, TwoPhaseSettings

PROGRAM, DEFAULT = "experiments/two_phase.py", "tiny"
COMPARE, RECORD = "compare", "record"
TWO_PHASES = "L21.twophase"


@dataclass(frozen=True)
class Arguments(Sources):
    """Train a network of convolutions, turn it into attention, check it, and go on training.

    Without arguments: on the bundled slice of CIFAR-10, in a few minutes on two cores. The word
    `compare` in front trains many second phases after one first phase, and makes a table; `record`
    puts those of L21's size on record for the ledger.
    """

    settings: Annotated[TwoPhaseSettings, tyro.conf.arg(name="")] = field(
        default_factory=TwoPhaseSettings
    )


@dataclass(frozen=True)
class ComparisonArguments(Sources):
    """Train one first phase for each seed, and second phases that begin with it in several ways."""

    comparison: Annotated[ComparisonSettings, tyro.conf.arg(name="")] = field(
        default_factory=ComparisonSettings
    )


@dataclass(frozen=True)
class RecordArguments:
    """Put the runs of one seed of a comparison on record for L21.twophase."""

    folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="FOLDER")]
    """The folder seed-S of a comparison."""
    replace: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False
    """Replace the record of other runs."""


def read_arguments(words: Sequence[str], configs: Path) -> Arguments | ComparisonArguments:
    """The arguments, over the config that they name.

    Raises:
        ValueError: For an unknown config; `SystemExit` for what tyro refuses.
    """
    config = chosen_config(words, configs, DEFAULT)
    settings = config.load(TwoPhaseSettings)
    if words[:1] == [COMPARE]:
        chosen = ComparisonArguments(config.name, comparison=ComparisonSettings(settings))
        prog = f"python {PROGRAM} {COMPARE}"
        return tyro.cli(ComparisonArguments, default=chosen, args=list(words[1:]), prog=prog)
    default = Arguments(config.name, settings=settings)
    return tyro.cli(Arguments, default=default, args=list(words), prog=f"python {PROGRAM}")


def command_of(words: Sequence[str]) -> str:
    """The one line that repeats a pipeline or a comparison, into a new folder.

    >>> command_of(["compare", "--seeds", "0", "1", "--output-dir", "runs/a"])
    'python experiments/two_phase.py compare --seeds 0 1'
    """
    if list(words[:1]) == [COMPARE]:
        program = f"{PROGRAM} {COMPARE}"
        return repeating_command(words[1:], PROGRAM).replace(PROGRAM, program, 1)
    return repeating_command(words, PROGRAM)


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
    from convattn_lab.training.failures import NonFiniteLoss
    from convattn_lab.training.hosts import one_process_alone
    from convattn_lab.two_phase.conversion_check import ConversionFailed

    try:
        if words[:1] == [RECORD]:
            prog = f"python {PROGRAM} {RECORD}"
            return record_as_asked(tyro.cli(RecordArguments, args=words[1:], prog=prog))
        args = read_arguments(words, configs)
        if args.list:
            return list_configs(configs)
        one_process_alone(PROGRAM)
        if isinstance(args, ComparisonArguments):
            return compare_as_asked(args, command_of(words))
        return train_as_asked(args, command_of(words))
    except ValueError as error:
        raise UsageError(str(error)) from error
    except (ConversionFailed, NonFiniteLoss) as failure:
        print(f"{PROGRAM}: {failure}", file=sys.stderr)
        return FAILED


def train_as_asked(args: Arguments, command: str) -> int:
    """Both phases, a summary and pictures."""
    from convattn.cli.output import console
    from convattn_lab.two_phase.pipeline import PHASE_ONE, PHASE_TWO, run_two_phase

    out, folder = console(), args.output_dir or run_folder(f"two-phase-{args.config}")
    settings = with_images(args.settings, args)
    summary = run_two_phase(settings, folder, command=command, console=out)
    if summary is None:
        out.print(f"go on with: {command} --output-dir {shlex.quote(str(folder))}")
        return SUCCESS
    if args.figures:
        from convattn.diagnosis.picture import save_picture
        from two_phase_comparison.pictures import draw_phases

        figure = draw_phases(folder / PHASE_ONE, folder / PHASE_TWO, title_of(summary))
        for picture in save_picture(figure, folder / "figures", "phases"):
            out.print(f"figure: {picture}")
    test = summary["conversion"]["test"]
    out.print(f"test accuracy after phase one {percent(summary['phase_one'])}")
    out.print(f"test accuracy before phase two {100 * test['after']:.1f} %")
    out.print(f"test accuracy {percent(summary['phase_two'])}")
    return SUCCESS


def compare_as_asked(args: ComparisonArguments, command: str) -> int:
    """All the runs, and the tables and pictures of those that there are."""
    from convattn.cli.output import console
    from convattn.files import write_inside
    from convattn_lab.runs.directory import write_json
    from two_phase_comparison.comparison import ComparisonDirectory, compare
    from two_phase_comparison.table import comparison_rows, gradient_rows, markdown

    out, folder = console(), args.output_dir or run_folder(f"comparison-{args.config}")
    settings = replace(args.comparison, pipeline=with_images(args.comparison.pipeline, args))
    done = compare(settings, folder, command=command, console=out)
    directory = ComparisonDirectory(folder)
    rows, gradients = comparison_rows(settings, directory), gradient_rows(settings, directory)
    write_json(folder / "table.json", {"command": command, "rows": rows, "gradients": gradients})
    text = markdown(rows, gradients, len(settings.seeds))
    write_inside(folder / "table.md", text.encode())
    if args.figures:
        from two_phase_comparison.pictures import draw_comparison

        for picture in draw_comparison(settings, directory):
            out.print(f"figure: {picture}")
    out.print(text, markup=False)
    if not done:
        out.print(f"go on with: {command} --output-dir {shlex.quote(str(folder))}")
    return SUCCESS


def record_as_asked(args: RecordArguments) -> int:
    """Put the runs of a seed on record for the ledger, or say why they do not count for its row."""
    from convattn_lab.records.record import write_record

    record, check = write_record(args.folder, TWO_PHASES, replace=args.replace)
    print(f"{check.path}\nit supports the verdict: {check.experiment().verdict_of(record)}")
    print(f"now: convattn verify --claim {TWO_PHASES}")
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
    right, count = phase["test_accuracy"], phase["test_images"]
    return f"{100 * right:.1f} % ({round(right * count)} of {count})"
