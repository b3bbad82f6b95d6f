"""Settings of two phases as JSON and back."""

import dataclasses
from typing import Any

from convattn.lab.runs.codec import settings_from_json, settings_to_json
from convattn.lab.runs.settings import RunSettings
from convattn.lab.two_phase.conversion_settings import ConversionSettings
from convattn.lab.two_phase.settings import TwoPhaseSettings


def two_phase_to_json(settings: TwoPhaseSettings) -> dict[str, Any]:
    """What JSON can hold of the settings: all of it.

    >>> sorted(two_phase_to_json(TwoPhaseSettings()))
    ['check_images', 'conversion', 'images', 'model', 'training_one', 'training_two']
    """
    one, two = settings_to_json(settings.phase_one), settings_to_json(settings.phase_two)
    return {
        "model": one["model"],
        "images": one["images"],
        "training_one": one["training"],
        "training_two": two["training"],
        "conversion": dataclasses.asdict(settings.conversion),
        "check_images": settings.check_images,
    }


def two_phase_from_json(stored: dict[str, Any]) -> TwoPhaseSettings:
    """The settings that `two_phase_to_json` was given.

    Raises:
        ValueError: For what it did not give.

    >>> two_phase_from_json(two_phase_to_json(TwoPhaseSettings())) == TwoPhaseSettings()
    True
    """
    try:
        runs: list[RunSettings] = [
            settings_from_json(
                {"model": stored["model"], "images": stored["images"], "training": stored[name]}
            )
            for name in ("training_one", "training_two")
        ]
        return TwoPhaseSettings(
            runs[0].model,  # type: ignore[arg-type]
            runs[0].images,
            runs[0].training,
            runs[1].training,
            ConversionSettings(**stored["conversion"]),
            stored["check_images"],
        )
    except (KeyError, TypeError) as problem:
        raise ValueError(
            f"these are no settings of two phases ({problem!r}); they come from another version, "
            "or the file was damaged"
        ) from problem


def changed_fields(one: TwoPhaseSettings, other: TwoPhaseSettings) -> list[str]:
    """The names under which settings differ.

    >>> changed_fields(TwoPhaseSettings(), TwoPhaseSettings(check_images=5))
    ['check_images']
    """
    left, right = two_phase_to_json(one), two_phase_to_json(other)
    found = []
    for name, value in left.items():
        if not isinstance(value, dict):
            found += [name] * (value != right[name])
            continue
        inner = sorted({*value, *right[name]})
        found += [f"{name}.{key}" for key in inner if value.get(key) != right[name].get(key)]
    return found
