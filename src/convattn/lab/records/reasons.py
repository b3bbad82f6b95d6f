"""Why the record of a run cannot back a row of the ledger.

A run backs a row if its settings are those of the paper, it is finished, it was made by committed
code, on all 60,000 images of CIFAR-10 from an official archive, and it began with the parameters
that its seed drew, or with those that the row wants.

A record is text, and says what it says: what was changed by hand in a consistent way is found only
by whoever has the checkpoint, or repeats the run.
"""

from typing import Any

from convattn.lab.data.download import ARCHIVES
from convattn.lab.records.experiments import Row, differences
from convattn.lab.records.pruning_reasons import pruning_shortcomings, settings_after_pruning

TRAINING_IMAGES, TEST_IMAGES = 50_000, 10_000
OFFICIAL = {ARCHIVES["cifar10-binary"].md5}
# Of the training images as published, x/255, to the four decimals in which they are usually given.
MEAN, DEVIATION = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)
HALF_UNIT = 0.00005


def shortcomings(row: Row, record: dict[str, Any]) -> list[str]:
    """Why a run cannot back a row; nothing if it can.

    Args:
        record: Anything that was read as JSON.
    """
    try:
        found = [] if record["claim"] == row.claim else [f"it was recorded for {record['claim']}"]
        found += beginning_shortcomings(row, record)
        found += result_shortcomings(record["result"], record["config"]["training"])
        found += image_shortcomings(record["run"]["images"])
        found += code_shortcomings(record["run"])
        dtype = record["config"]["training"]["compute_dtype"]
        shown = (record["run"]["seed"], dtype, record["result"]["device"])
        if [type(value) for value in shown] != [int, str, str]:
            found.append(f"its seed, dtype and device are {shown}")
        return found
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as problem:
        return [f"its record is damaged ({problem!r})"]


def beginning_shortcomings(row: Row, record: dict[str, Any]) -> list[str]:
    """What speaks against its settings, and the parameters that it began with."""
    config, pruning, initial = record["config"], record["pruning"], record["initial"]
    if row.source is None:
        found = differences(row.settings, config)
        if pruning is not None or initial is not None:
            found.append("it began with the parameters of another run")
    elif pruning is None or not isinstance(initial, str):
        return ["no heads were pruned for it"]
    else:
        found = pruning_shortcomings(row.source, record)
        if not found:
            found = differences(settings_after_pruning(row.settings, record), config)
    if config["model"]["kind"] != "encoder":
        found.append(f"its model is a {config['model']['kind']}")
    return found


def result_shortcomings(result: dict[str, Any], training: dict[str, Any]) -> list[str]:
    """What speaks against how it ended; `training` is of its own settings."""
    found = []
    status, step, steps = result["status"], result["step"], result["steps"]
    wanted = training["epochs"] * (TRAINING_IMAGES // training["batch_size"])
    if (status, step, steps) != ("finished", wanted, wanted):
        found.append(f"it is {status} at step {step} of {steps}, but its epochs have {wanted}")
    if result["test_images"] != TEST_IMAGES:
        found.append(f"it was tested on {result['test_images']} images")
    accuracy = result["test_accuracy"]
    # NaN and infinities fail the first comparison, and a share of the images is a float exactly so.
    if not (
        type(accuracy) in (float, int)
        and 0 <= accuracy <= 1
        and round(accuracy * TEST_IMAGES) / TEST_IMAGES == accuracy
    ):
        found.append(f"its accuracy is {accuracy}, no share of {TEST_IMAGES} images")
    return found


def image_shortcomings(images: dict[str, Any]) -> list[str]:
    """What speaks against the images that it was made on."""
    found = []
    if (images["name"], images["note"]) != ("CIFAR-10", ""):
        found.append(f"its images are {images['name']} {images['note']}".rstrip())
    counts = (images["train"], images["validation"], images["test"])
    if counts != (TRAINING_IMAGES, 0, TEST_IMAGES):
        found.append(f"it has {counts} images to train on, to choose by, and to test on")
    if images["archive_md5"] not in OFFICIAL:
        found.append(
            "its images were not read from an official archive of CIFAR-10 (MD5 "
            f"{images['archive_md5']})"
        )
    for name, printed in (("mean", MEAN), ("std", DEVIATION)):
        # Not "any of them is farther": NaN is not.
        if not all(abs(a - b) <= HALF_UNIT for a, b in zip(images[name], printed, strict=True)):
            found.append(f"the {name} of its images is {images[name]}, that of CIFAR-10 {printed}")
    return found


def code_shortcomings(run: dict[str, Any]) -> list[str]:
    """What speaks against the code that it was made with, in all of its sittings."""
    states = [run["git"], *(sitting["git"] for sitting in run["sittings"])]
    found = []
    if any(state is None for state in states):
        found.append("the commit that it was made with is not known")
    elif any(state["changed"] is not False for state in states):
        found.append("it was made with code that was changed since its commit")
    elif len({state["commit"] for state in states}) != 1:
        found.append("it was made with the code of several commits")
    return found
