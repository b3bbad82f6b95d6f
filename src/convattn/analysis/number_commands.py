"""The commands of `experiments/analyse.py` that count and train."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

import tyro

from convattn.analysis.command_output import (
    PROGRAM,
    JsonFile,
    Run,
    Runs,
    require_file,
    require_runs,
    write_figures,
)
from convattn.commands.consoles import console
from convattn.commands.guard import SUCCESS
from convattn.commands.usage import UsageError

FAILED = 1


def table(
    runs: Runs,
    markdown: Annotated[bool, tyro.conf.FlagCreatePairsOff] = False,
    json: JsonFile = None,
) -> int:
    """Accuracies and sizes of runs (C20, Tables 1 and 4).

    Args:
        runs: Folders of runs.
        markdown: Print Markdown.
        json: Where to write the figures.
    """
    from convattn.analysis.table import markdown_table, rich_table, table_row

    require_runs(runs)
    require_file(json)
    rows = [table_row(run) for run in runs]
    if markdown:
        print(markdown_table(rows))
    else:
        console().print(rich_table(rows))
    write_figures(json, {"rows": [row.to_json() for row in rows]})
    return SUCCESS


def prune(
    run: Run,
    output_dir: Annotated[Path, tyro.conf.arg(metavar="DIR")],
    epochs: int | None = None,
    threshold_eigenvalue: float = 1e-5,
    threshold_condition: float = 1e5,
    json: JsonFile = None,
) -> int:
    """Remove degenerate heads, and train on at a tenth of the rate (C20, appendix E, Fig. 13).

    A run without degenerate heads is left alone. An interrupted one goes on with the same command.

    Args:
        run: The folder of a run with quadratic or general Gaussian attention.
        output_dir: The folder of the new run.
        epochs: To train on; a tenth of the run's if not given.
        threshold_eigenvalue: A head is degenerate if the largest eigenvalue of its inverse
            covariance is smaller,
        threshold_condition: or if the condition number is larger.
        json: Where to write the figures; they are in pruning.json of the new run, too.
    """
    from convattn.analysis.degenerate_heads import Thresholds
    from convattn.analysis.prune_run import prune_run
    from convattn.training.failures import NonFiniteLoss

    require_file(json)
    if epochs is not None and epochs < 1:
        raise UsageError(f"--epochs is {epochs}, but expected at least 1")
    try:
        found = prune_run(
            run,
            output_dir,
            command=shlex.join(["python", PROGRAM, *sys.argv[1:]]),
            epochs=epochs,
            thresholds=Thresholds(threshold_eigenvalue, threshold_condition),
            console=console(),
        )
    except NonFiniteLoss as failure:
        print(f"{PROGRAM} prune: {failure}", file=sys.stderr)
        return FAILED
    if found is None:
        print(
            "no head is degenerate: every inverse covariance has an eigenvalue of at least "
            f"{threshold_eigenvalue:g} and a condition number of at most {threshold_condition:g}; "
            "nothing was done"
        )
        return SUCCESS
    write_figures(json, found.to_json())
    if found.after is None:
        print("stopped; the same command goes on")
        return SUCCESS
    print(
        f"test accuracy before {100 * found.before:.1f} %, without {sum(found.removed)} heads "
        f"{100 * found.pruned:.1f} %, after training on {100 * found.after:.1f} % "
        f"({found.test_images:,} images of {found.images})"
    )
    return SUCCESS
