"""Disqualifying reasons: why the record of a run, or of several, says nothing for a row.

A run counts if its settings are those of the paper, it is finished, it was made by committed code,
on all images from an official archive, and it began with the parameters that its seed drew, or with
those that the row asks for.

A record is text, and says what it says: what was changed by hand in a consistent way is found only
by whoever has the checkpoint, or repeats the run.
"""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

from convattn.lab.data.download import ARCHIVES
from convattn.lab.records.experiments import (
    FIRST,
    FREE_OF_TWO_PHASES,
    RATES_ONE,
    RATES_TWO,
    RUNS,
    WITH,
    WITHOUT,
    Row,
    differences,
    paper_runs,
)
from convattn.lab.runs.settings import RunSettings

PIPELINE = "L21.twophase"
TRAINING_IMAGES, TEST_IMAGES = 50_000, 10_000
CIFAR10 = {ARCHIVES["cifar10-binary"].md5}
# Of the training images as published, x/255, to the four decimals in which they are usually given.
MEAN, DEVIATION = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)
HALF_UNIT = 0.00005
CIFAR100 = {ARCHIVES["cifar100-binary"].md5}
# A head goes if the largest eigenvalue of Σ⁻¹ is below, or its condition number above.
THRESHOLDS = {"largest": 1e-5, "condition": 1e5}
STEPS_PER_EPOCH = 500


def without_damage(check: Callable[[], list[str]]) -> list[str]:
    """The reasons that a check finds, or that the record is damaged."""
    try:
        return check()
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as problem:
        return [f"its record is damaged ({problem!r})"]


def run_reasons(row: Row, record: Any) -> list[str]:
    """Why a run does not count for a row of C20; nothing if it does.

    Args:
        record: Anything that was read as JSON.
    """

    def check() -> list[str]:
        found = [] if record["claim"] == row.claim else [f"it was recorded for {record['claim']}"]
        found += beginning_reasons(row, record)
        found += result_reasons(record["result"], record["config"]["training"])
        found += image_reasons(record["run"]["images"])
        found += code_reasons(record["run"])
        dtype = record["config"]["training"]["compute_dtype"]
        shown = (record["run"]["seed"], dtype, record["result"]["device"])
        if [type(value) for value in shown] != [int, str, str]:
            found.append(f"its seed, dtype and device are {shown}")
        return found

    return without_damage(check)


def beginning_reasons(row: Row, record: dict[str, Any]) -> list[str]:
    """What speaks against its settings, and the parameters that it began with."""
    config, pruning, initial = record["config"], record["pruning"], record["initial"]
    if row.source is None:
        found = differences(row.settings, config)
        if pruning is not None or initial is not None:
            found.append("it began with the parameters of another run")
    elif pruning is None or not isinstance(initial, str):
        return ["no heads were pruned for it"]
    else:
        found = pruning_reasons(row.source, record)
        if not found:
            found = differences(settings_after_pruning(row.settings, record), config)
    if config["model"]["kind"] != "encoder":
        found.append(f"its model is a {config['model']['kind']}")
    return found


def result_reasons(result: dict[str, Any], training: dict[str, Any]) -> list[str]:
    """What speaks against how it ended; `training` is of its own settings."""
    found = []
    status, step, steps = result["status"], result["step"], result["steps"]
    wanted = training["epochs"] * (TRAINING_IMAGES // training["batch_size"])
    if (status, step, steps) != ("finished", wanted, wanted):
        found.append(f"it is {status} at step {step} of {steps}, but its epochs have {wanted}")
    if result["test_images"] != TEST_IMAGES:
        found.append(f"it was tested on {result['test_images']} images")
    accuracy = result["test_accuracy"]
    # NaN and infinities fail the first comparison, and a fraction of the images is such a float.
    if not (
        type(accuracy) in (float, int)
        and 0 <= accuracy <= 1
        and round(accuracy * TEST_IMAGES) / TEST_IMAGES == accuracy
    ):
        found.append(f"its accuracy is {accuracy}, no fraction of {TEST_IMAGES} images")
    return found


def image_reasons(images: dict[str, Any]) -> list[str]:
    """What speaks against the images that it was made on."""
    found = []
    if (images["name"], images["note"]) != ("CIFAR-10", ""):
        found.append(f"its images are {images['name']} {images['note']}".rstrip())
    counts = (images["train"], images["validation"], images["test"])
    if counts != (TRAINING_IMAGES, 0, TEST_IMAGES):
        found.append(f"it has {counts} images to train on, to choose by, and to test on")
    if images["archive_md5"] not in CIFAR10:
        found.append(
            "its images were not read from an official archive of CIFAR-10 (MD5 "
            f"{images['archive_md5']})"
        )
    for name, printed in (("mean", MEAN), ("std", DEVIATION)):
        # Not "any of them is farther": NaN is not.
        if not all(abs(a - b) <= HALF_UNIT for a, b in zip(images[name], printed, strict=True)):
            found.append(f"the {name} of its images is {images[name]}, that of CIFAR-10 {printed}")
    return found


def code_reasons(run: dict[str, Any]) -> list[str]:
    """What speaks against the code that it was made with, in all of its training sessions."""
    states = [run["git"], *(session["git"] for session in run["sittings"])]
    found = []
    if any(state is None for state in states):
        found.append("the commit that it was made with is not known")
    elif any(state["changed"] is not False for state in states):
        found.append("it was made with code that was changed since its commit")
    elif len({state["commit"] for state in states}) != 1:
        found.append("it was made with the code of several commits")
    return found


def pruning_reasons(source: RunSettings, record: dict[str, Any]) -> list[str]:
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
    found += heads_reasons(source, pruning["kept"], pruning["removed"])
    if pruning["epochs_before"] != source.training.epochs:
        found.append(
            f"its heads were pruned after {pruning['epochs_before']} epochs, "
            f"not after {source.training.epochs}"
        )
    found += source_reasons(source, record)
    if pruning["after"] != record["result"]["test_accuracy"]:
        found.append(f"its pruning.json gives the accuracy {pruning['after']} after training on")
    return found


def heads_reasons(source: RunSettings, kept: Any, removed: Any) -> list[str]:
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


def source_reasons(source: RunSettings, record: dict[str, Any]) -> list[str]:
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
        record: One in whose heads nothing is wrong.
    """
    epochs = record["config"]["training"]["epochs"]
    if type(epochs) is not int or epochs < 1:
        raise ValueError(f"training.epochs is {epochs}")
    heads = tuple(len(layer) for layer in record["pruning"]["kept"])
    model: Any = settings.model
    training = replace(settings.training, epochs=min(epochs, settings.training.epochs))
    return replace(settings, model=replace(model, heads=heads), training=training)


def pipeline_reasons(record: Any) -> list[str]:
    """Why the runs of a comparison do not count for L21.twophase; nothing if they do.

    Args:
        record: Anything that was read as JSON.
    """

    def check() -> list[str]:
        found = [] if record["claim"] == PIPELINE else [f"it was recorded for {record['claim']}"]
        for name, settings in paper_runs().items():
            run = record["runs"][name]
            problems = differences(settings, run["config"], FREE_OF_TWO_PHASES)
            found += [f"{name}: {problem}" for problem in problems + phase_reasons(name, run)]
        extra = sorted(set(record["runs"]) - set(RUNS))
        found += [f"there is a run {name} that nothing is known of" for name in extra]
        first = record["runs"][FIRST]
        for name in (WITH, WITHOUT):
            found += [f"{name}: {why}" for why in conversion_reasons(record["runs"][name], first)]
        return found

    return without_damage(check)


def phase_reasons(name: str, run: dict[str, Any]) -> list[str]:
    """What speaks against a run: its rate, its end, its images, its beginning, its code."""
    training, images = run["config"]["training"], run["run"]["images"]
    found = []
    rates = RATES_TWO if name in (WITH, WITHOUT) else RATES_ONE
    if training["learning_rate"] not in rates:
        found.append(f"its learning rate {training['learning_rate']} is none of {rates}")
    found += result_reasons(run["result"], training)
    given = (images["name"], images["note"], images["classes"], images["archive_md5"] in CIFAR100)
    if given != ("CIFAR-100", "", 100, True):
        found.append("its images were not read from an official archive of CIFAR-100")
    if (images["train"], images["validation"]) != (TRAINING_IMAGES, 0):
        found.append(f"it was trained on {images['train']} images")
    if name not in (WITH, WITHOUT) and (run["initial"], run["conversion"]) != (None, None):
        found.append("it began with the parameters of another run")
    return found + code_reasons(run["run"])


def conversion_reasons(run: dict[str, Any], first: dict[str, Any]) -> list[str]:
    """What speaks against how a second phase began."""
    conversion = run["conversion"]
    if conversion is None or not isinstance(run["initial"], str):
        return ["it was not converted from another run"]
    found = []
    how = conversion["conversion"]
    if (how["kind"], how["logit"]) != ("limit", 40.0):
        found.append(f"its conversion is {how['kind']}, M = {how['logit']}, not L21's")
    source = conversion["source"]
    if (source["config"], source["result"]) != (first["config"], first["result"]):
        found.append("it was converted from another first phase")
    if conversion["check"]["passed"] is not True:
        found.append("its check did not pass")
    return found
