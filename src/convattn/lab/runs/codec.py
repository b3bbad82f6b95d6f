"""Settings as JSON and back."""

import dataclasses
from typing import Any

from convattn.lab.models.settings import (
    EncoderSettings,
    ResNetSettings,
    SelfAttentiveResNetSettings,
    VisionTransformerSettings,
)
from convattn.lab.runs.settings import ImageSettings, RunSettings
from convattn.lab.training.settings import TrainingSettings

MODELS = {
    "encoder": EncoderSettings,
    "resnet": ResNetSettings,
    "self-attentive-resnet": SelfAttentiveResNetSettings,
    "vision-transformer": VisionTransformerSettings,
}


def settings_to_json(settings: RunSettings) -> dict[str, Any]:
    """What JSON can hold of the settings: all of it, with the kind of model named.

    >>> settings_to_json(RunSettings())["model"]["kind"]
    'encoder'
    """
    kind = next(name for name, of in MODELS.items() if isinstance(settings.model, of))
    return {
        "model": {"kind": kind, **dataclasses.asdict(settings.model)},
        "images": dataclasses.asdict(settings.images),
        "training": dataclasses.asdict(settings.training),
    }


def settings_from_json(stored: dict[str, Any]) -> RunSettings:
    """The settings that `settings_to_json` was given.

    Raises:
        ValueError: For an unknown kind of model, or unknown or missing fields.

    >>> settings_from_json(settings_to_json(RunSettings())) == RunSettings()
    True
    """
    try:
        model = dict(stored["model"])
        kind = model.pop("kind")
        if kind not in MODELS:
            raise ValueError(f"model.kind={kind!r}, but expected one of {', '.join(MODELS)}")
        return RunSettings(
            _made(MODELS[kind], model),
            _made(ImageSettings, stored["images"]),
            _made(TrainingSettings, stored["training"]),
        )
    except (KeyError, TypeError, AttributeError) as problem:
        raise ValueError(
            f"these are no settings of a run ({problem}); they come from another version"
        ) from problem


def named_fields(settings: RunSettings) -> dict[str, Any]:
    """Every field by its name, `training.seed` for one, but for where the images come from.

    Another machine may have the same images elsewhere.

    >>> named_fields(RunSettings())["training.seed"]
    0
    """
    return {
        f"{part}.{name}": value
        for part, fields in settings_to_json(settings).items()
        for name, value in fields.items()
        if (part, name) != ("images", "source")
    }


def _made(of: Any, values: dict[str, Any]) -> Any:
    values = {**getattr(of, "BEFORE", {}), **values}  # what the absence of a later field says
    missing = sorted({field.name for field in dataclasses.fields(of)} - set(values))
    if missing:  # today's default need not be what the run had
        raise KeyError(", ".join(missing))
    return of(**{k: tuple(v) if isinstance(v, list) else v for k, v in values.items()})
