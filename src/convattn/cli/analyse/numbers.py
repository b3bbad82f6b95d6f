"""The commands of `experiments/analyse.py` that count and train."""

import sys
from pathlib import Path
from typing import Annotated

import tyro

from convattn.cli.analyse.number_options import Count
from convattn.cli.analyse.output import (
    FAILED,
    PROGRAM,
    Folder,
    JsonFile,
    Run,
    Runs,
    require_file,
    require_folder,
    require_runs,
    write_numbers,
)
from convattn.cli.output import console
from convattn.cli.running import SUCCESS, UsageError


def table(
    runs: Runs,
    markdown: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
    json: JsonFile = None,
) -> int:
    """Accuracies and sizes of runs (C20, Tables 1 and 4).

    Args:
        runs: Folders of runs.
        markdown: Print Markdown.
        json: Where to write the numbers, as JSON.
    """
    from convattn.lab.analysis.table import markdown_table, rich_table, table_row

    require_runs(runs)
    require_file(json)
    rows = [table_row(run) for run in runs]
    if markdown:
        print(markdown_table(rows))
    else:
        console().print(rich_table(rows))
    write_numbers(json, {"rows": [row.to_json() for row in rows]})
    return SUCCESS


def prune(
    run: Run,
    output_dir: Folder = None,
    epochs: Count = None,
    threshold_eigenvalue: float = 1e-5,
    threshold_condition: float = 1e5,
    json: JsonFile = None,
) -> int:
    """Remove degenerate heads, and train on at a tenth of the rate (C20, appendix E, Fig. 13).

    A run without degenerate heads is left alone. An interrupted one goes on with the same command.

    Args:
        run: The folder of a finished run with quadratic or general Gaussian attention.
        output_dir: The folder of the new run; RUN-pruned, beside the run, if not given.
        epochs: To train on; a tenth of the run's if not given.
        threshold_eigenvalue: A head is degenerate if the largest eigenvalue of its inverse
            covariance is smaller,
        threshold_condition: or if the condition number is larger.
        json: Where to write the numbers, as JSON, also if no head is degenerate; pruning.json of
            the new run has them, too.
    """
    from convattn.lab.analysis.degenerate_heads import Thresholds
    from convattn.lab.analysis.prune_run import percent, prune_run
    from convattn.lab.training.failures import CheckpointNotWritten, NonFiniteLoss

    require_file(json)
    require_folder(output_dir)
    if epochs is not None and epochs < 1:
        raise UsageError(f"--epochs is {epochs}, but expected at least 1")
    thresholds = Thresholds(threshold_eigenvalue, threshold_condition)
    folder = run.resolve().with_name(f"{run.resolve().name}-pruned")
    folder = folder if output_dir is None else output_dir
    try:
        found = prune_run(
            run,
            folder,
            command=pruning_command(run, epochs, threshold_eigenvalue, threshold_condition),
            epochs=epochs,
            thresholds=thresholds,
            console=console(),
        )
    except (CheckpointNotWritten, NonFiniteLoss) as failure:
        print(f"{PROGRAM} prune: {failure}", file=sys.stderr)
        return FAILED
    write_numbers(json, found.to_json())
    if not any(found.removed):
        print(
            "no head is degenerate: every inverse covariance has an eigenvalue of at least "
            f"{threshold_eigenvalue:g} and a condition number of at most {threshold_condition:g}; "
            "nothing was done"
        )
        return SUCCESS
    print(f"run: {folder}")
    if found.after is None:
        print("stopped; the same command goes on")
        return SUCCESS
    result = found.source["result"]
    print(
        f"test accuracy before {percent(found.before)}, without {sum(found.removed)} heads "
        f"{percent(found.pruned)}, after training on {percent(found.after)} "
        f"({result['test_images']:,} images of {result['images']})"
    )
    return SUCCESS


def pruning_command(run: Path, epochs: int | None, eigenvalue: float, condition: float) -> str:
    """The line that repeats a pruning from anywhere, into a folder of its own."""
    from convattn.lab.analysis.degenerate_heads import LEAST_EIGENVALUE, MOST_CONDITION
    from convattn.lab.runs.arguments import repeating_command

    words = ["prune", str(run.resolve())]
    for option, value, default in (
        ("--epochs", epochs, None),
        ("--threshold-eigenvalue", eigenvalue, LEAST_EIGENVALUE),
        ("--threshold-condition", condition, MOST_CONDITION),
    ):
        if value != default:
            words += [option, repr(value)]
    return repeating_command(words, program=PROGRAM)
