"""What a checkpoint must have in common with the run that goes on from it."""

import dataclasses
from typing import Any

from flax import nnx

from convattn.lab.training.examples import TrainingExamples
from convattn.lab.training.settings import TrainingSettings
from convattn.lab.training.structure import digest_of_structure

FREE = ("devices", "steps_per_call", "snapshot_every", "checkpoint_minutes", "keep_checkpoints")


def identity_of(
    settings: TrainingSettings, examples: TrainingExamples, structure: nnx.GraphDef
) -> dict[str, Any]:
    """All that decides the result, in a form that JSON keeps.

    Of the settings all but those that may change from one sitting to the next: they decide how a
    run is carried out. Of the model its static structure: its arrays are in the checkpoint.

    >>> sorted(set(dataclasses.asdict(TrainingSettings())) & set(FREE)) == sorted(FREE)
    True
    """
    decisive = dataclasses.asdict(settings)
    for name in FREE:
        del decisive[name]
    model = {"model": digest_of_structure(structure)}
    return {**decisive, **model, **examples.identity()}


def differences(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    """The names under which two identities differ.

    >>> differences({"a": 1, "b": 2}, {"a": 1, "b": 3, "c": None})
    ['b', 'c']
    """
    missing = object()
    names = sorted({*one, *other})
    return [name for name in names if one.get(name, missing) != other.get(name, missing)]
