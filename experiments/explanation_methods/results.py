"""What is kept of one model: how near each method comes to its truth, in a JSON file of its own."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from convattn.files import parse_json, read_file, write_file
from explanation_methods.distances import head_distances
from explanation_methods.methods import METHODS, SEED, STEPS, VARIANTS, explain
from explanation_methods.scores import Scores, score
from explanation_methods.subjects import Cases, Subject, all_cases

METRICS = ("inside", "jacobian", "product")
SHORTCUT = "22-shortcut"
DIGITS = 5
Result = dict[str, Any]


def model_result(subject: Subject, suite: Path, output: Path) -> tuple[Result, bool]:
    """Explain a model of the suite, or read what is kept of it.

    Args:
        subject: The model.
        suite: The folder of the suite, from which it was read.
        output: Where `models/NN-name.json` is kept.

    Returns:
        The result, and whether it was kept: of the same files, by the same settings.

    Raises:
        ValueError: If a kept result cannot be read.
    """
    name = subject.name
    path = output / "models" / f"{name}.json"
    settings = _settings(suite, name)
    if path.exists():
        try:
            earlier = parse_json(read_file(path))
        except ValueError as error:
            raise ValueError(f"{path} is no result: {error}; remove it, and it is made") from error
        if isinstance(earlier, dict) and earlier.get("settings") == settings:
            return earlier, True
    result = {"name": name, "settings": settings, **explained(subject)}
    path.parent.mkdir(parents=True, exist_ok=True)
    write_file(path, compact(result))
    return result, False


def compact(result: Any) -> bytes:
    """As JSON on one line."""
    text = json.dumps(result, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return (text + "\n").encode()


def _settings(suite: Path, name: str) -> Result:
    paths = [suite / f"{name}{end}" for end in (".safetensors", ".truth.safetensors")]
    digests = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}
    return {"schema": 1, "steps": STEPS, "seed": SEED, "files": digests}


def explained(subject: Subject) -> Result:
    """Scores by group of cases and method, and the distances of the heads."""
    groups: dict[str, list[tuple[Cases, dict[str, Scores]]]] = {}
    maps: Result = {}
    for cases in all_cases(subject):
        maps_by_method = explain(subject, cases)
        scores = {
            name: score(each, cases.field, cases.jacobian, cases.product)
            for name, each in maps_by_method.items()
        }
        for group in dict.fromkeys([cases.group, cases.group.partition(" ")[0]]):
            groups.setdefault(group, []).append((cases, scores))
        if subject.name == SHORTCUT and cases.group == "logits":
            truth = {"derivative": cases.jacobian, "derivative × input": cases.product}
            maps = {key: shares(each) for key, each in (truth | maps_by_method).items()}
    distances = [[asdict(head) for head in heads] for heads in head_distances(subject)]
    return {
        "counts": {group: _counts([cases for cases, _ in own]) for group, own in groups.items()},
        "scores": {
            group: {
                name: _means([scores[name] for _, scores in own]) for name in METHODS + VARIANTS
            }
            for group, own in groups.items()
        },
        "distances": distances,
        "maps": maps,
    }


def _counts(groups: Sequence[Cases]) -> dict[str, int]:
    """All cases, those with no derivative, and of the others those with a field of all tokens."""
    zero = sum(cases.left_out for cases in groups)
    return {
        "cases": zero + sum(len(cases.images) for cases in groups),
        "zero derivative": zero,
        "whole field": sum(int(cases.field.all(axis=1).sum()) for cases in groups),
    }


def _means(scores: Sequence[Scores]) -> Result:
    """Over all cases in which a metric is defined; None if there are none."""
    means: Result = {}
    for metric in METRICS:
        numbers = np.concatenate([getattr(each, metric) for each in scores])
        numbers = numbers[~np.isnan(numbers)]
        means[metric] = round(float(numbers.mean()), DIGITS) if len(numbers) else None
    return means | {"blank": sum(int(each.blank.sum()) for each in scores)}


def shares(maps: np.ndarray) -> list[list[float]]:
    """Maps `[cases, tokens]` divided by their sums, rounded; zeros stay zeros.

    >>> shares(np.array([[1.0, 3.0], [0.0, 0.0]]))
    [[0.25, 0.75], [0.0, 0.0]]
    """
    sums = maps.sum(axis=1, keepdims=True)
    return (maps / np.where(sums > 0, sums, 1)).round(DIGITS).tolist()
