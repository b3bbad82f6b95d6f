"""What a run is made from: its images, its fraction of them, their size, and their augmentation."""

from dataclasses import replace

import numpy as np
import pytest

from convattn.data.datasets import read_dataset
from convattn_lab.data.augmentation.settings import Augmentation
from convattn_lab.data.split import validation_split
from convattn_lab.runs.images import augmentation_of, image_size_of, training_images
from convattn_lab.runs.settings import ImageSettings, RunSettings
from convattn_lab.training.images import TrainingImages
from convattn_lab.training.settings import TrainingSettings

DATASET = read_dataset(None)


def images_of(seed: int = 0, **images: object) -> TrainingImages:
    training = TrainingSettings(seed=seed)
    return training_images(DATASET, RunSettings(images=ImageSettings(**images), training=training))


def rows(images) -> set[bytes]:
    return {picture.tobytes() for picture in images.images}


def test_a_fraction_is_of_each_class_and_part_of_a_larger_one() -> None:
    small, large = images_of(share=0.1, validation=0.2), images_of(share=0.3, validation=0.2)
    assert np.bincount(small.train.labels).tolist() == [16] * 10
    assert np.bincount(large.train.labels).tolist() == [48] * 10
    assert rows(small.train) < rows(large.train)
    assert not rows(large.train) & rows(large.validation)
    assert rows(images_of(1, share=0.1, validation=0.2).train) != rows(small.train)


def test_the_validation_images_are_the_same_for_every_fraction() -> None:
    _, expected = validation_split(DATASET.train, 0.2, seed=0)
    assert np.array_equal(images_of(share=0.1, validation=0.2).validation.images, expected.images)


def test_the_fraction_is_drawn_apart_from_the_validation_images() -> None:
    """The same fraction of the same images with the same seed, but others."""
    assert rows(images_of(share=0.1).train) != rows(images_of(validation=0.1).validation)


def test_statistics_are_those_of_the_images_that_are_trained_on() -> None:
    small = images_of(share=0.1)
    assert np.allclose(
        small.mean, small.train.images.mean(axis=(0, 1, 2)) / 255, rtol=0, atol=1e-12
    )
    assert not np.array_equal(small.mean, images_of().mean)


def test_the_model_is_made_for_the_size_that_it_is_given() -> None:
    assert image_size_of(DATASET, RunSettings()) == (32, 32)
    assert image_size_of(DATASET, RunSettings(images=ImageSettings(resize=48))) == (48, 48)
    assert images_of(resize=48).resize == 48


def test_every_augmentation_reaches_the_batches() -> None:
    changes = {"crop": 3, "flip": False, "rand_augment": 8, "mixup": 0.7, "cutmix": 0.9}
    result = augmentation_of(ImageSettings(**changes, erasing=0.2))
    assert result == Augmentation(**changes, erasing=0.2)
    assert augmentation_of(ImageSettings()) == Augmentation(4, True)
    nothing = ImageSettings(crop=0, flip=False)
    assert augmentation_of(nothing) is None
    for name in ("rand_augment", "mixup", "cutmix", "erasing"):
        assert getattr(augmentation_of(replace(nothing, **{name: 0.5})), name) == 0.5


def test_runs_with_other_augmentations_are_told_apart() -> None:
    plain = images_of().identity()
    assert plain["augmentation"] == {"crop": 4, "flip": True}  # as before there was more
    assert "resize" not in plain
    changes = {"rand_augment": 9, "mixup": 0.8, "cutmix": 1.0, "erasing": 0.25}
    changes |= {"resize": 48, "share": 0.5, "crop": 0}
    identities = [str(images_of(**{name: value}).identity()) for name, value in changes.items()]
    assert len({str(plain), *identities}) == len(changes) + 1


def test_a_fraction_without_images_of_a_class_is_refused_by_its_name() -> None:
    with pytest.raises(ValueError, match=r"share=1e-09, but .* takes 0 of the"):
        images_of(share=1e-9)


def test_crops_beyond_the_images_are_refused_before_there_is_a_run() -> None:
    images_of(crop=31)
    with pytest.raises(ValueError, match="crop=32, but expected less than the 32×32 pixels"):
        images_of(crop=32)
