"""`experiments/initialization.py`: one small vision transformer from several initialisations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from convattn.cli.running import SUCCESS, run_program

PROGRAM = "experiments/initialization.py"
SIZES = (1_000, 4_000)


@dataclass(frozen=True)
class Arguments:
    """Train one small vision transformer from several initialisations, and compare them.

    Without --quick: three learning rates for each, by validation images, then five seeds on 1,000
    and 4,000 images of --data. Runs whose results are in the folder are not repeated, and a run
    that was stopped goes on; so the command can be given again at any time, also several times at
    once on different cores.
    """

    quick: bool = False
    """One seed, one learning rate, 400 images of the bundled slice."""
    data: Annotated[Path | None, tyro.conf.arg(metavar="PATH")] = None
    """CIFAR-10: a folder or archive, as for experiments/cifar.py."""
    sizes: tuple[int, ...] = SIZES
    """Numbers of training images, each at least 100."""
    output_dir: Annotated[Path, tyro.conf.arg(metavar="DIR")] = Path("build/initialization")
    """Results go there, runs into its folder runs/."""
    dataset: Literal["cifar10", "digits"] = "cifar10"
    """CIFAR-10, or 100 of scikit-learn's digits, which need no --data; results go into digits/."""
    first_grid: bool = False
    """Only the three learning rates that docs/initialization.md's first plan tried."""
    table: bool = False
    """Only print the table of the results that are there, and draw them."""


def main(words: Sequence[str] | None = None) -> int:
    """Run it.

    Returns:
        0, also if it was stopped by a signal and saved, if runs diverged, or if another process
        still makes some of them; 2 for wrong use.
    """
    return run_program(PROGRAM, Arguments, _compare, words)


def _compare(args: Arguments) -> int:
    from convattn.cli.output import console
    from convattn.data.datasets import read_dataset
    from convattn_lab.runs.images import digest_of
    from initialization_comparison import trials
    from initialization_comparison.digits import read_digits
    from initialization_comparison.results import read_results
    from initialization_comparison.run import finish_trials
    from initialization_comparison.table import chosen_rates, describe_rate

    _require_options(args)
    digits, out, folder = args.dataset == "digits", console(), args.output_dir
    if args.quick or digits:
        folder = folder / ("quick" if args.quick else "digits")
    task = trials.DIGITS if digits else trials.CIFAR
    sizes = (trials.DIGITS_IMAGES,) if digits else args.sizes
    dataset, digest = None, None
    if not args.table:
        dataset = read_digits() if digits else read_dataset(args.data)
        digest = digest_of(dataset)
    if not args.quick and not digits:
        trials.require_sizes(sizes, None if dataset is None else len(dataset.train))
    read_results(folder, digest)  # what is wrong with them is said before anything runs
    compared = trials.quick()
    left: int | None = 0
    if not args.quick:
        tried = trials.tuning(task, first_grid=args.first_grid)
        if dataset is not None:
            left = finish_trials(tried, dataset, folder, out)
            if left is None:
                return SUCCESS
        results = read_results(folder, digest)
        rates = chosen_rates(results, tried)
        for name in trials.INITIALIZERS:
            own = [trial.name in results for trial in tried if trial.initializer == name]
            if name in rates:
                grid = [trial.learning_rate for trial in tried if trial.initializer == name]
                out.print(describe_rate(name, rates[name], grid))
            elif all(own):
                out.print(f"{name}: every learning rate diverged, so it is left out")
        compared = trials.comparison(rates, sizes, task)
    if dataset is not None:
        more = finish_trials(compared, dataset, folder, out)
        if more is None or left is None:
            return SUCCESS
        left += more
    reported = _report(compared, read_results(folder, digest), folder, out)
    if left:
        out.print(
            f"runs of other processes: {left}; repeat the command after them, for what is left "
            "and the whole table"
        )
    elif not reported:
        raise ValueError(f"{folder} holds no results yet; leave out --table to make them")
    return SUCCESS


def _require_options(args: Arguments) -> None:
    if args.dataset == "digits":
        _require_no_options_of_cifar(args)
        return
    if args.quick and args.data is not None:
        raise ValueError(
            "--quick and --data, but expected one of them: --quick takes the bundled slice"
        )
    if args.quick and args.sizes != SIZES:
        raise ValueError("--quick and --sizes, but --quick has 400 images; leave out one of them")
    if not args.quick and args.data is None and not args.table:
        raise ValueError(
            "no --data, but expected CIFAR-10 (a folder or an archive); --quick takes the bundled "
            "slice"
        )


def _require_no_options_of_cifar(args: Arguments) -> None:
    others = {
        "--quick": args.quick,
        "--data": args.data is not None,
        "--sizes": args.sizes != SIZES,
        "--first-grid": args.first_grid,
    }
    named = ", ".join(name for name, is_set in others.items() if is_set)
    if named:
        raise ValueError(f"--dataset digits and {named}, but these are of CIFAR-10; leave them out")


def _report(trials: Sequence[Any], results: Mapping[str, Any], folder: Path, out: Any) -> bool:
    """Print the table and draw the figures, if there are results."""
    from convattn.diagnosis.picture import save_picture
    from initialization_comparison.table import draw_results, results_table, rows

    table_rows = rows(results, trials)
    if table_rows:
        out.print(results_table(table_rows))
    for images in dict.fromkeys(row.images for row in table_rows):
        for path in save_picture(draw_results(table_rows, images), folder / "figures", f"{images}"):
            out.print(f"figure: {path}")
    return bool(table_rows)
