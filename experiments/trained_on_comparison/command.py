"""`experiments/trained_on.py`: a compiled CNN trained on, beside other initialisations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from convattn.cli.running import SUCCESS, run_program

PROGRAM = "experiments/trained_on.py"
SUBFOLDERS = ("slice", "cifar10")


@dataclass(frozen=True)
class Arguments:
    """Compile a small CNN into a vision transformer, train it on, and compare.

    Three learning rates for each start, by validation images of the bundled slice, then five seeds
    on 1,600 images of the slice and on 4,000 of --data. Runs whose results are in the folder are
    not repeated, and a run that was stopped goes on; so the command can be given again at any time,
    also several times at once on different cores.
    """

    data: Annotated[Path | None, tyro.conf.arg(metavar="PATH")] = None
    """CIFAR-10: a folder or archive, as for experiments/cifar.py."""
    output_dir: Annotated[Path, tyro.conf.arg(metavar="DIR")] = Path("build/trained_on")
    """Results go there, into a folder for each of the two sets of images."""
    table: bool = False
    """Only print the tables of the results that are there."""


def main(words: Sequence[str] | None = None) -> int:
    """Run it.

    Returns:
        0, also if it was stopped by a signal and saved, or if another process still makes some of
        the runs; 2 for wrong use.
    """
    return run_program(PROGRAM, Arguments, _compare, words)


def _compare(args: Arguments) -> int:
    from initialization_comparison.results import read_results
    from initialization_comparison.run import finish_trials
    from initialization_comparison.table import chosen_rates, describe_rate

    from convattn.cli.output import console
    from convattn.data.datasets import read_dataset
    from convattn_lab.runs.images import digest_of
    from trained_on_comparison import trials
    from trained_on_comparison.compiling import Starts, Stopped

    if args.table == (args.data is not None):
        raise ValueError(
            "--table beside --data, but --table only prints; leave out one of them"
            if args.table
            else "no --data, but expected CIFAR-10 (a folder or an archive); or give --table"
        )
    out, folders = console(), [args.output_dir / name for name in SUBFOLDERS]
    datasets: list[Any] = [None, None]
    if args.data is not None:
        datasets = [read_dataset(), trials.with_few_tests(read_dataset(args.data))]
        left = len(datasets[1].train)
        if left < trials.CIFAR_IMAGES + trials.TASK.validation:
            raise ValueError(
                f"{args.data} has {left:,} training images, but expected at least "
                f"{trials.CIFAR_IMAGES:,} and {trials.TASK.validation} for validation"
            )
    digests = [None if dataset is None else digest_of(dataset) for dataset in datasets]
    for folder, digest in zip(folders, digests, strict=True):
        read_results(folder, digest)  # what is wrong with them is said before anything runs

    def finished(runs: Sequence[Any], index: int) -> bool:
        if datasets[index] is None:
            return True
        try:
            left = finish_trials(
                runs, datasets[index], folders[index], out, Starts(folders[index]), PROGRAM
            )
        except Stopped:
            out.print("stopped; the same command goes on with the convolutional network")
            return False
        if left:
            out.print(f"runs of other processes: {left}; repeat the command after them")
        return left == 0

    tried = trials.tuning()
    if not finished([*tried, trials.exact()], 0):
        return SUCCESS
    rates = chosen_rates(read_results(folders[0], digests[0]), tried)
    for name, rate in rates.items():
        out.print(describe_rate(name, rate, trials.LEARNING_RATES[name]))
    sizes = (trials.SLICE_IMAGES, trials.CIFAR_IMAGES)
    compared = [trials.comparison(rates, images) for images in sizes]
    if not all(finished(runs, index) for index, runs in enumerate(compared)):
        return SUCCESS
    reported = [
        _report(runs, folder, digest, out)
        for runs, folder, digest in zip(compared, folders, digests, strict=True)
    ]
    if not any(reported):
        raise ValueError(f"{args.output_dir} holds no results yet; give --data to make them")
    return SUCCESS


def _report(trials: Sequence[Any], folder: Path, digest: str | None, out: Any) -> bool:
    """Print the tables of one set of images, if there are results."""
    from initialization_comparison.results import read_results
    from initialization_comparison.table import results_table, rows

    from trained_on_comparison.table import print_networks, read_networks

    results: Mapping[str, Any] = read_results(folder, digest)
    table_rows = rows(results, trials)
    if table_rows:
        out.print(results_table(table_rows))
        print_networks(read_networks(folder), table_rows, out)
    return bool(table_rows)
