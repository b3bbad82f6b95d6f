"""`experiments/similarity.py`: a network that is trained to tell pairs of one class."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import tyro
from flax import nnx
from scipy.stats import binomtest

from convattn.cli.experiments.experiment import ExperimentCommand
from convattn.lab.data.augmentation.settings import Augmentation
from convattn.lab.data.datasets import read_dataset
from convattn.lab.data.pairs import draw_pairs
from convattn.lab.data.split import validation_split
from convattn.lab.data.statistics import channel_statistics
from convattn.lab.models.settings import SimilaritySettings
from convattn.lab.models.similarity import SimilarityNetwork
from convattn.lab.runs.facts import digest_of
from convattn.lab.runs.launch import Experiment
from convattn.lab.settings import Count, Natural, Rate, settings
from convattn.lab.training.pairs import TrainingPairs
from convattn.lab.training.session import Outcome
from convattn.lab.training.settings import TrainingSettings
from convattn.ledger.images.cifar10_slice import Images

PROGRAM = "experiments/similarity.py"
RECIPE = TrainingSettings(
    epochs=8,
    batch_size=50,
    optimizer="adamw",
    learning_rate=2e-3,
    weight_decay=0.05,
)


@settings
class PairSettings:
    """Which images are paired, and how they are augmented."""

    source: str | None = None
    """An archive of CIFAR or image folders; the bundled slice of CIFAR-10 if not given."""
    rounds: Count = 4
    """In how many training pairs each training image is."""
    test_rounds: Count = 1
    """The same of test images; with 1 the results of the test pairs are independent."""
    crop: Natural = 4
    """Training images are padded by so many pixels and cropped at random, each by itself."""
    flip: bool = True
    """Half of the training images are mirrored, each by itself."""
    validation: Rate = 0.0
    """The fraction of the training images that is split off for validation pairs, by class."""
    limit: Count | None = None
    """Take only the first so many training images and test images."""


@settings
class SimilarityRunSettings:
    """All that decides a run."""

    model: Annotated[SimilaritySettings, tyro.conf.arg(name="")] = field(
        default_factory=SimilaritySettings
    )
    pairs: PairSettings = field(default_factory=PairSettings)
    training: TrainingSettings = RECIPE


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


def make_experiment(chosen: SimilarityRunSettings) -> Experiment:
    """The pairs, and the model as the seed draws it.

    The seed of the training draws the pairs, too. Test pairs are those of seed 0 whatever it is.

    Raises:
        ValueError: For images that cannot be paired.
    """
    given, seed = chosen.pairs, chosen.training.seed
    dataset = read_dataset(given.source)
    train, test, validation = first(dataset.train, given.limit), dataset.test, None
    test = first(test, given.limit)
    if given.validation:
        train, validation = validation_split(train, given.validation, seed=seed)
    mean, std = channel_statistics(train)
    apart = None if validation is None else draw_pairs(validation)
    augmentation = Augmentation(given.crop, given.flip) if given.crop or given.flip else None
    examples = TrainingPairs(
        draw_pairs(train, rounds=given.rounds, seed=seed),
        draw_pairs(test, rounds=given.test_rounds),
        mean,
        std,
        apart,
        augmentation,
    )
    _, height, width, _ = train.images.shape
    model = SimilarityNetwork(
        chosen.model,
        image_size=(height, 2 * width),
        rngs=nnx.Rngs(seed),
        dtype=chosen.training.compute_dtype,
    )
    counts = {name: len(part) for name, part in examples.judged.items()}
    data = {
        "name": dataset.title,
        "sha256": digest_of(dataset),
        "pairs": {"train": len(examples.train), **counts},
    }

    def summary(outcome: Outcome) -> dict[str, Any]:
        if outcome.status != "finished":
            return {}
        pairs = len(examples.test)
        right = round((outcome.test_accuracy or 0.0) * pairs)
        low, high = binomtest(right, pairs).proportion_ci(method="wilson")
        return {
            "test_pairs": pairs,
            "test_right": right,
            "interval": [float(low), float(high)],
            "independent": given.test_rounds == 1,
        }

    return Experiment(chosen, chosen.training, model, examples, data, summary)


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
