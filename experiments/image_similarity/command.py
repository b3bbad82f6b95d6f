"""`experiments/similarity.py`: a network that is trained to tell pairs of one class."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import tyro
from flax import nnx
from rich.console import Console
from scipy.stats import binomtest

from convattn.data.cifar10_slice import Images
from convattn.data.datasets import Dataset, read_dataset
from convattn_lab.commands.experiment import run_experiment
from convattn_lab.data.augmentation.settings import Augmentation
from convattn_lab.data.split import validation_split
from convattn_lab.data.statistics import channel_statistics
from convattn_lab.runs.active_run import begin_run
from convattn_lab.runs.images import digest_of
from convattn_lab.training.trainer import Outcome, train
from image_similarity.model import SimilarityNetwork
from image_similarity.pairs import draw_pairs
from image_similarity.settings import SimilarityRunSettings
from image_similarity.training_pairs import TrainingPairs

PROGRAM = "experiments/similarity.py"


@dataclass(frozen=True)
class Arguments:
    """Train a network that says whether two images show the same class (Barkan, section 6.1).

    Without arguments: with cross attention, on pairs of the bundled slice of CIFAR-10, in a few
    minutes on two cores. `--attention own --segments none` lets each image attend to itself alone.
    Repeating a command with its --output-dir goes on with the run.
    """

    settings: Annotated[SimilarityRunSettings, tyro.conf.arg(name="")] = field(
        default_factory=SimilarityRunSettings
    )
    output_dir: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None
    """The folder of the run; default: runs/similarity-DATE-TIME."""


def main(words: Sequence[str] | None = None) -> int:
    """Run it; the exit codes are those of `run_experiment`."""
    return run_experiment(PROGRAM, Arguments, train_similarity, report, words)


def train_similarity(
    chosen: SimilarityRunSettings, folder: Path, *, command: str, console: Console
) -> Outcome:
    """Train on pairs of images; the result has an interval for the test accuracy.

    Raises:
        ValueError: For images that cannot be paired; and as `begin_run` and `train`.
    """
    options, dataset = chosen.pairs, read_dataset(chosen.pairs.source)
    examples = training_pairs(chosen, dataset)
    _, height, width, _ = dataset.train.images.shape
    model = SimilarityNetwork(
        chosen.model,
        image_size=(height, 2 * width),
        rngs=nnx.Rngs(chosen.training.seed),
        dtype=chosen.training.compute_dtype,
    )
    counts = {name: len(eval_set) for name, eval_set in examples.eval_sets.items()}
    data = {
        "name": dataset.title,
        "sha256": digest_of(dataset),
        "pairs": {"train": len(examples.train), **counts},
    }
    with begin_run(
        folder, chosen, model, examples, command=command, data=data, console=console
    ) as run:
        outcome = train(chosen.training, examples, model, folder, console=console, locked=True)
        summary: dict[str, Any] = {}
        if outcome.status == "finished":
            pairs = len(examples.test)
            right = round((outcome.test_accuracy or 0.0) * pairs)
            low, high = binomtest(right, pairs).proportion_ci(method="wilson")
            summary = {
                "test_pairs": pairs,
                "test_right": right,
                "interval": [float(low), float(high)],
                "independent": options.test_rounds == 1,
            }
        run.end(outcome, summary)
    return outcome


def training_pairs(chosen: SimilarityRunSettings, dataset: Dataset) -> TrainingPairs:
    """The pairs; the seed of the training draws them, too, but those for testing have seed 0.

    Raises:
        ValueError: For images that cannot be paired.
    """
    options, seed = chosen.pairs, chosen.training.seed
    train, validation = first(dataset.train, options.limit), None
    if options.validation:
        train, validation = validation_split(train, options.validation, seed=seed)
    mean, std = channel_statistics(train)
    return TrainingPairs(
        draw_pairs(train, rounds=options.rounds, seed=seed),
        draw_pairs(first(dataset.test, options.limit), rounds=options.test_rounds),
        mean,
        std,
        None if validation is None else draw_pairs(validation),
        Augmentation(options.crop, options.flip) if options.crop or options.flip else None,
    )


def first(images: Images, limit: int | None) -> Images:
    """The first so many images."""
    if limit is None:
        return images
    return replace(images, images=images.images[:limit], labels=images.labels[:limit])


def report(result: dict[str, Any]) -> Sequence[str]:
    """What is printed at the end."""
    low, high = result["interval"]
    note = "" if result["independent"] else "; the pairs share images, so it should be wider"
    return [
        f"right: {result['test_right']} of {result['test_pairs']} test pairs, "
        f"{100 * result['test_accuracy']:.1f} % (95 % interval {100 * low:.1f} to "
        f"{100 * high:.1f} %{note}); chance is 50 %"
    ]
