"""What is trained on: the vision transformer of the compiled network, and the plan of the runs.

docs/known-answers.md has the metric and the analysis, written before the runs.
"""

from collections.abc import Mapping
from functools import partial

from initialization_comparison.trials import SEEDS, TUNING_SEED, Task, Trial

from convattn.data.datasets import Dataset
from convattn.nnx.vision_transformer.settings import VisionTransformerSettings

NETWORK = VisionTransformerSettings(
    depth=4,
    width=144,
    inner=144,
    heads=9,
    head_width=16,
    patch_size=4,
    projection="learned",
    position="absolute",
    pooling="class",
    stochastic_depth=0.0,
)
COMPILED, EXACT = "compiled", "compiled, exact"
LEARNING_RATES: Mapping[str, tuple[float, ...]] = {
    "truncated normal": (5e-4, 1e-3, 2e-3),
    "impulse": (5e-4, 1e-3, 2e-3),
    "convolution, filters": (5e-4, 1e-3, 2e-3),
    COMPILED: (3e-6, 1e-5, 3e-5),
}
EXACT_RATE = 3e-6  # once, on the tuning seed: exact constants trained on
SLICE_IMAGES, CIFAR_IMAGES = 1_600, 4_000
TEST_IMAGES = 2_000  # of CIFAR-10's
TASK = Task(
    NETWORK,
    epochs={SLICE_IMAGES: 1, CIFAR_IMAGES: 1},
    validation=500,
    batch_size=10,
    snapshots=1,
)


def tuning() -> list[Trial]:
    """The runs on the slice that choose a learning rate, by validation images."""
    make = partial(Trial, images=SLICE_IMAGES, seed=TUNING_SEED, task=TASK)
    tried = [(name, rate) for name, rates in LEARNING_RATES.items() for rate in rates]
    return [make(name, learning_rate=rate) for name, rate in tried]


def exact() -> Trial:
    """The run that trains on from exact constants, for which no rate is chosen."""
    return Trial(EXACT, SLICE_IMAGES, EXACT_RATE, TUNING_SEED, TASK)


def comparison(rates: Mapping[str, float], images: int) -> list[Trial]:
    """The runs that are compared, seed by seed."""
    make = partial(Trial, images=images, task=TASK)
    return [
        make(name, learning_rate=rates[name], seed=seed)
        for seed in SEEDS
        for name in LEARNING_RATES
        if name in rates
    ]


def with_few_tests(dataset: Dataset) -> Dataset:
    """At most 2,000 of the test images, at equal steps, and a name that says so."""
    if len(dataset.test) <= TEST_IMAGES:
        return dataset
    images = dataset.test
    chosen = slice(None, None, len(images) // TEST_IMAGES)
    test = type(images)(images.images[chosen], images.labels[chosen], images.class_names)
    return Dataset(f"{dataset.name}, {len(test):,} test images", dataset.train, test, dataset.note)
