"""What a checkpoint must have in common with the run that goes on from it."""

import dataclasses
import zlib
from typing import Any

import numpy as np
from flax import nnx

from convattn.data.cifar10 import Images
from convattn.training.images import TrainingImages
from convattn.training.settings import TrainingSettings
from convattn.training.structure import digest_of_structure

FREE = ("devices", "steps_per_call", "snapshot_every", "checkpoint_minutes", "keep_checkpoints")


def identity_of(
    settings: TrainingSettings, images: TrainingImages, structure: nnx.GraphDef
) -> dict[str, Any]:
    """All that decides the result, in a form that JSON keeps.

    Of the settings all but those that may change from one sitting to the next: they decide how a
    run is carried out. Of the images their number and a checksum. Of the model its static
    structure: its arrays are in the checkpoint.

    >>> sorted(set(dataclasses.asdict(TrainingSettings())) & set(FREE)) == sorted(FREE)
    True
    """
    decisive = dataclasses.asdict(settings)
    for name in FREE:
        del decisive[name]
    varied = images.augmentation
    return {
        **decisive,
        "model": digest_of_structure(structure),
        "augmentation": None if varied is None else dataclasses.asdict(varied),
        "mean": np.asarray(images.mean, np.float64).tolist(),
        "std": np.asarray(images.std, np.float64).tolist(),
        "training images": fingerprint(images.train),
        "validation images": fingerprint(images.validation),
    }


def fingerprint(images: Images | None) -> list[int] | None:
    """How many, and the CRC-32 of their bytes and labels."""
    if images is None:
        return None
    total = zlib.crc32(np.ascontiguousarray(images.images).data)
    labels = np.ascontiguousarray(images.labels, np.int32)
    return [len(images), zlib.crc32(labels.data, total)]


def differences(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """The names under which two identities differ.

    >>> differences({"a": 1, "b": 2}, {"a": 1, "b": 3, "c": None})
    ['b', 'c']
    """
    missing = object()
    names = sorted({*one, *other})
    return [name for name in names if one.get(name, missing) != other.get(name, missing)]
