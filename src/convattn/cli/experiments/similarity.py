"""`experiments/similarity.py`: from settings to a trained network and the share it gets right."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from flax import nnx

from convattn.cli.experiments.experiment import ExperimentCommand
from convattn.lab.data.batches import Augmentation
from convattn.lab.data.datasets import read_dataset
from convattn.lab.data.pairs import draw_pairs
from convattn.lab.data.split import validation_split
from convattn.lab.data.statistics import channel_statistics
from convattn.lab.models.similarity import SimilarityNetwork
from convattn.lab.runs.experiment import Experiment
from convattn.lab.runs.facts import digest_of
from convattn.lab.runs.interval import wilson_interval
from convattn.lab.similarity.settings import Arguments, SimilarityRunSettings
from convattn.lab.training.pairs import TrainingPairs
from convattn.lab.training.session import Outcome
from convattn.ledger.images.cifar10_slice import Images

PROGRAM = "experiments/similarity.py"


def make_experiment(settings: SimilarityRunSettings) -> Experiment:
    """The pairs, and the model as the seed draws it.

    The seed of the training draws the pairs, too. Test pairs are those of seed 0 whatever it is.

    Raises:
        ValueError: For images that cannot be paired.
    """
    given, seed = settings.pairs, settings.training.seed
    dataset = read_dataset(given.source)
    train, test, validation = first(dataset.train, given.limit), dataset.test, None
    test = first(test, given.limit)
    if given.validation:
        train, validation = validation_split(train, given.validation, seed=seed)
    mean, std = channel_statistics(train)
    apart = None if validation is None else draw_pairs(validation)
    varied = Augmentation(given.crop, given.flip) if given.crop or given.flip else None
    examples = TrainingPairs(
        draw_pairs(train, rounds=given.rounds, seed=seed),
        draw_pairs(test, rounds=given.test_rounds),
        mean,
        std,
        apart,
        varied,
    )
    _, height, width, _ = train.images.shape
    model = SimilarityNetwork(
        settings.model,
        image_size=(height, 2 * width),
        rngs=nnx.Rngs(seed),
        dtype=settings.training.compute_dtype,
    )
    counts = {name: len(part) for name, part in examples.judged.items()}
    data = {
        "name": dataset.title,
        "sha256": digest_of(dataset),
        "pairs": {"train": len(examples.train), **counts},
    }

    def summary(outcome: Outcome) -> dict[str, Any]:
        pairs = len(examples.test)
        right = round((outcome.test_accuracy or 0.0) * pairs)
        low, high = wilson_interval(right, pairs)
        return {
            "test_pairs": pairs,
            "test_right": right,
            "interval": [low, high],
            "independent": given.test_rounds == 1,
        }

    return Experiment(PROGRAM, settings, model, examples, settings.training, data, summary)


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


COMMAND = ExperimentCommand(PROGRAM, Arguments, make_experiment, report)
