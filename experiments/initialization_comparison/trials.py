"""What is trained and compared: one network, its initial parameters, and the plan of the runs.

docs/initialization.md has the metric and the analysis, written before the runs.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from convattn import initialization as start
from convattn.nnx.vision_transformer.settings import VisionTransformerSettings
from convattn_lab.runs.settings import ImageSettings, RunSettings
from convattn_lab.training.settings import TrainingSettings

Arrays = Mapping[str, np.ndarray]
Range = tuple[np.ndarray, np.ndarray]
Initializer = Callable[[Arrays, int, Range, int], dict[str, np.ndarray]]

NETWORK = VisionTransformerSettings(
    depth=4,
    width=72,
    inner=288,
    heads=3,
    head_width=24,
    patch_size=4,
    projection="learned",
    position="absolute",
    stochastic_depth=0.0,
)
VALIDATION = 2_000  # images
QUICK_IMAGES = 400
EPOCHS = {QUICK_IMAGES: 12, 1_000: 60, 4_000: 30}  # by training images; 100 for other numbers
QUICK_RATE = 1e-3
LEARNING_RATES = (5e-4, 1e-3, 2e-3)  # of the first plan
FURTHER_RATES = {  # of the second, beyond the end at which the first one's best rate lay
    "mimetic": (2.5e-4,),
    **dict.fromkeys(("impulse", "convolution, impulses", "convolution, filters"), (4e-3, 8e-3)),
}
SEEDS = (0, 1, 2, 3, 4)
TUNING_SEED, TUNING_IMAGES = 100, 1_000
MIN_IMAGES = 100
SNAPSHOTS = 4  # over a run, besides that before the first step


def _baseline(initialized: Callable[..., dict[str, np.ndarray]]) -> Initializer:
    return lambda arrays, seed, image_range, heads: initialized(arrays, heads=heads, seed=seed)


def _convolution(kernel: str) -> Initializer:
    def initialized(
        arrays: Arrays, seed: int, image_range: Range, heads: int
    ) -> dict[str, np.ndarray]:
        initial = start.convolutional(
            arrays, kernel, heads=heads, image_range=image_range, seed=seed
        )
        return dict(initial.parameters)

    return initialized


INITIALIZERS: dict[str, Initializer] = {
    "truncated normal": _baseline(start.truncated_normal),
    "mimetic": _baseline(start.mimetic),
    "impulse": _baseline(start.impulse),
    "convolution, impulses": _convolution("impulses"),
    "convolution, filters": _convolution("filters"),
}


@dataclass(eq=False)
class Task:
    """What is trained on which images.

    Attributes:
        network: The vision transformer.
        epochs: By the number of training images; 100 for other numbers.
        tuning_images: On how many the learning rates are chosen.
        rates: Those that are tried.
        validation: How many of the training images become validation images, at most.
        batch_size: At most a quarter of the training images.
        crop, flip: How training images are augmented.
        snapshots: Over a run, besides that before the first step.
    """

    network: VisionTransformerSettings
    epochs: Mapping[int, int]
    tuning_images: int = TUNING_IMAGES
    rates: tuple[float, ...] = LEARNING_RATES
    validation: int = VALIDATION
    batch_size: int = 100
    crop: int = 4
    flip: bool = True
    snapshots: int = SNAPSHOTS


CIFAR = Task(NETWORK, EPOCHS)
DIGITS_IMAGES = 100
DIGITS = Task(
    replace(NETWORK, patch_size=2),
    epochs={DIGITS_IMAGES: 100},
    tuning_images=DIGITS_IMAGES,
    rates=(1e-3, 2e-3, 4e-3),
    validation=200,
    crop=1,
    flip=False,
)


@dataclass(frozen=True)
class Trial:
    """One run.

    Attributes:
        initializer: A name of `INITIALIZERS`.
        images: How many are trained on, of each class the same number.
        learning_rate: The peak.
        seed: Of the choice of images, their order and augmentation, and the initial parameters.
            With the same seed and number all initialisers see the same batches.
        task: The network, and the recipe.
    """

    initializer: str
    images: int
    learning_rate: float
    seed: int
    task: Task = CIFAR

    @property
    def name(self) -> str:
        """Of its folder and its file.

        >>> Trial("convolution, filters", 1000, 1e-3, 2).name
        'convolution-filters-1000-0.001-2'
        """
        words = self.initializer.replace(",", "").replace(" ", "-")
        return f"{words}-{self.images}-{self.learning_rate:g}-{self.seed}"

    @property
    def tunes(self) -> bool:
        """Whether it is one of those that choose a learning rate, which see no test image."""
        return self.seed == TUNING_SEED

    def settings(self, available: int) -> RunSettings:
        """All that decides the run, of so many training images that there are.

        Where the images lie is no part of it; that they are the same is checked by their digest.
        """
        task = self.task
        validation = validation_images(available, task.validation)
        epochs = task.epochs.get(self.images, 100)
        others = available - validation
        return RunSettings(
            model=task.network,
            images=ImageSettings(
                crop=task.crop,
                flip=task.flip,
                validation=validation / available,
                share=min(1.0, self.images / others),
            ),
            training=TrainingSettings(
                epochs=epochs,
                batch_size=min(task.batch_size, self.images // 4),
                optimizer="adamw",
                learning_rate=self.learning_rate,
                warmup=0.1,
                weight_decay=0.05,
                evaluate_every=epochs,
                snapshot_every=-(-epochs // task.snapshots),
                seed=self.seed,
            ),
        )


def validation_images(available: int, limit: int = VALIDATION) -> int:
    """How many of the training images that there are become validation images."""
    return min(limit, available // 5)


def require_sizes(sizes: Sequence[int], available: int | None) -> None:
    """Refuse numbers of training images that no run can have.

    Args:
        available: How many training images there are; None if that is not known.

    Raises:
        ValueError: As described above.
    """
    if not sizes:
        raise ValueError("--sizes names no number, but expected at least one; leave it out")
    if available is not None:
        left = available - validation_images(available)
        largest = max(*sizes, TUNING_IMAGES)
        if largest > left:
            whose = "--sizes" if largest in sizes else "the tuning of learning rates"
            raise ValueError(
                f"{whose} takes {largest:,} training images, but there are {available:,}, of which "
                f"{available - left:,} are for validation; give smaller --sizes, or data with more "
                "images"
            )
    if min(sizes) < MIN_IMAGES:
        raise ValueError(
            f"--sizes {min(sizes)}, but expected at least {MIN_IMAGES}, ten of each class; give "
            "larger ones"
        )


def quick() -> list[Trial]:
    """One run of each initialiser on few images."""
    return [Trial(name, QUICK_IMAGES, QUICK_RATE, SEEDS[0]) for name in INITIALIZERS]


def tuning(task: Task = CIFAR, *, first_grid: bool = False) -> list[Trial]:
    """The runs that choose a learning rate for each initialiser, by validation images.

    Args:
        task: On which images.
        first_grid: Whether only the three rates of the first plan are tried.
    """
    make = partial(Trial, images=task.tuning_images, seed=TUNING_SEED, task=task)
    further = {} if first_grid or task is not CIFAR else FURTHER_RATES
    return [
        make(name, learning_rate=rate)
        for name in INITIALIZERS
        for rate in sorted({*task.rates, *further.get(name, ())})
    ]


def comparison(rates: Mapping[str, float], sizes: Sequence[int], task: Task = CIFAR) -> list[Trial]:
    """The runs that are compared, of those initialisers that have a learning rate.

    Seed by seed, so that results with few seeds are whole.
    """
    return [
        Trial(name, images, rates[name], seed, task)
        for images in dict.fromkeys(sizes)
        for seed in SEEDS
        for name in INITIALIZERS
        if name in rates
    ]
