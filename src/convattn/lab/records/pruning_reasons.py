"""What speaks against a run that began by pruning another one: C20, appendix E."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

from convattn.lab.records.experiments import differences
from convattn.lab.runs.settings import RunSettings

# A head goes if the largest eigenvalue of Σ⁻¹ is below, or its condition number above.
THRESHOLDS = {"largest": 1e-5, "condition": 1e5}
STEPS_PER_EPOCH = 500


def pruning_shortcomings(source: RunSettings, record: dict[str, Any]) -> list[str]:
    """Why what was pruned is not what the paper pruned; nothing if it is.

    Args:
        source: The settings of the run that is to be pruned.
        record: With `pruning.json` under `pruning`.

    Raises:
        KeyError: `TypeError` and the like for a damaged record.
    """
    pruning = record["pruning"]
    found = []
    if pruning["thresholds"] != THRESHOLDS:
        found.append(f"its heads were pruned by {pruning['thresholds']}, not by {THRESHOLDS}")
    found += heads_shortcomings(source, pruning["kept"], pruning["removed"])
    if pruning["epochs_before"] != source.training.epochs:
        found.append(
            f"its heads were pruned after {pruning['epochs_before']} epochs, "
            f"not after {source.training.epochs}"
        )
    found += source_shortcomings(source, record)
    if pruning["after"] != record["result"]["test_accuracy"]:
        found.append(f"its pruning.json gives the accuracy {pruning['after']} after training on")
    return found


def heads_shortcomings(source: RunSettings, kept: Any, removed: Any) -> list[str]:
    """What speaks against the heads that went, and those that stayed, layer by layer.

    Args:
        kept: For each layer the numbers of heads, counted from 1.
        removed: How many went, for each layer.
    """
    model: Any = source.model
    before: tuple[int, ...] = model.heads
    if not (
        len(kept) == len(removed) == len(before)
        and all(type(count) is int for count in removed)
        and any(removed)
    ):
        return [f"{removed} heads were pruned, but expected some of {len(before)} layers"]
    for layer, count, all_of_them in zip(kept, removed, before, strict=True):
        fits = len(layer) == all_of_them - count and all(type(head) is int for head in layer)
        rises = all(a < b for a, b in pairwise([0, *layer, all_of_them + 1]))
        if not (0 <= count <= all_of_them and fits and rises):
            return [f"{count} of {all_of_them} heads were pruned, but {layer} were kept"]
    return []


def source_shortcomings(source: RunSettings, record: dict[str, Any]) -> list[str]:
    """What speaks against the run whose heads were pruned."""
    given = record["pruning"]["source"]
    found = [f"of the run that was pruned {text}" for text in differences(source, given["config"])]
    result, steps = given["result"], source.training.epochs * STEPS_PER_EPOCH
    if result is None or (result["status"], result["step"], result["steps"]) != (
        "finished",
        steps,
        steps,
    ):
        found.append(f"the run that was pruned did not take all of {steps} steps")
    if given["images_sha256"] != record["run"]["images"]["sha256"]:
        found.append("the run that was pruned had other images")
    return found


def settings_after_pruning(settings: RunSettings, record: dict[str, Any]) -> RunSettings:
    """The row's settings with the heads that this run was left with, and its epochs if fewer.

    Args:
        record: One in whose heads there are no shortcomings.
    """
    epochs = record["config"]["training"]["epochs"]
    if type(epochs) is not int or epochs < 1:
        raise ValueError(f"training.epochs is {epochs}")
    heads = tuple(len(layer) for layer in record["pruning"]["kept"])
    model: Any = settings.model
    training = replace(settings.training, epochs=min(epochs, settings.training.epochs))
    return replace(settings, model=replace(model, heads=heads), training=training)
