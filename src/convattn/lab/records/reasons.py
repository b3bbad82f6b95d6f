"""Disqualifying reasons: why the record of a run, or of several, says nothing for a row.

A run counts if its settings are those of the paper, it is finished, it was made by committed code,
on all images from an official archive, and it began with the parameters that its seed drew, or with
those that the row asks for.

A record is text, and says what it says: what was changed by hand in a consistent way is found only
by whoever has the checkpoint, or repeats the run.
"""

from collections.abc import Mapping
from dataclasses import replace
from itertools import chain, repeat
from typing import Annotated, Any, cast

from pydantic import AfterValidator, Field

from convattn.lab.data.download import ARCHIVES
from convattn.lab.records.experiments import (
    FIRST,
    FREE,
    FREE_OF_TWO_PHASES,
    RATES_ONE,
    RATES_TWO,
    WITH,
    WITHOUT,
    Pipeline,
    Row,
    differences,
    paper_runs,
)
from convattn.lab.records.schema import equal, mismatches, part, such_that
from convattn.lab.runs.settings import RunSettings
from convattn.lab.settings import Count

TRAINING_IMAGES, TEST_IMAGES = 50_000, 10_000
# Of the training images as published, x/255, to the four decimals in which they are usually given.
MEAN, DEVIATION = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)
HALF_UNIT = 0.00005
# A head goes if the largest eigenvalue of Σ⁻¹ is below, or its condition number above.
THRESHOLDS = {"largest": 1e-5, "condition": 1e5}

Accuracy = Annotated[
    float,
    Field(ge=0, le=1),
    such_that(
        f"a fraction of {TEST_IMAGES} images",
        lambda accuracy: round(accuracy * TEST_IMAGES) / TEST_IMAGES == accuracy,
    ),
]


def near(printed: tuple[float, ...]) -> Any:
    """The type of numbers that are printed so."""

    def holds(numbers: list[float]) -> bool:
        pairs = zip(numbers, printed, strict=False)
        return len(numbers) == len(printed) and all(abs(a - b) <= HALF_UNIT for a, b in pairs)

    return Annotated[list[float], such_that(f"{printed}, to four decimals", holds)]


ALL_IMAGES = {"note": "", "train": TRAINING_IMAGES, "validation": 0}
CIFAR10 = {
    **{"name": "CIFAR-10", "archive_md5": ARCHIVES["cifar10-binary"].md5, **ALL_IMAGES},
    **{"test": TEST_IMAGES, "mean": near(MEAN), "std": near(DEVIATION)},
}
CIFAR100 = {
    **{"name": "CIFAR-100", "archive_md5": ARCHIVES["cifar100-binary"].md5, **ALL_IMAGES},
    "classes": 100,
}
PRUNED = {  # what the document of a pruned run is made from
    "config": {"training": {"epochs": Count}},
    "run": {"images": {"sha256": str}},
    "result": {"test_accuracy": Accuracy},
    "pruning": {"kept": list[list[int]]},
}


def reasons_against(row: Row | Pipeline, record: Any) -> list[str]:
    """Why a record does not count for a row; nothing if it does.

    Args:
        row: Of the ledger.
        record: Anything that was read as JSON.
    """
    return run_reasons(row, record) if isinstance(row, Row) else pipeline_reasons(row, record)


def run_reasons(row: Row, record: Any) -> list[str]:
    """The same for a row of C20."""
    settings = row.settings
    began: dict[str, Any] = {"pruning": None, "initial": None}
    if row.source is not None:
        damage = mismatches(record, PRUNED)
        if damage:
            return damage
        began = {"pruning": pruning_of(row.source, record), "initial": str}
        # The heads that this run was left with, and its epochs if fewer.
        heads, model = tuple(map(len, began["pruning"]["kept"])), cast(Any, settings.model)
        epochs = min(record["config"]["training"]["epochs"], settings.training.epochs)
        training = replace(settings.training, epochs=epochs)
        settings = replace(settings, model=replace(model, heads=heads), training=training)
    encoder = {"model": {"kind": "encoder"}, "training": {"compute_dtype": str}}
    facts, end = {"images": CIFAR10, "seed": int}, {**end_of(settings), "device": str}
    whole = run_of(like(settings, encoder), facts, end)
    return mismatches(record, {"claim": row.claim, **began, **whole})


def pipeline_reasons(row: Pipeline, record: Any) -> list[str]:
    """The same for L21.twophase."""
    damage = mismatches(record, {"runs": {FIRST: {"config": dict, "result": dict}}})
    if damage:
        return damage
    source = {name: equal(record["runs"][FIRST][name]) for name in ("config", "result")}
    how = {"kind": "limit", "logit": 40.0}
    converted = {"conversion": how, "source": source, "check": {"passed": True}}
    runs = {}
    for name, settings in paper_runs().items():
        second = name in (WITH, WITHOUT)
        rates = RATES_TWO if second else RATES_ONE
        rate = Annotated[float, such_that(f"one of {rates}", rates.__contains__)]
        config = like(
            settings, {"training": {"learning_rate": rate}}, FREE_OF_TWO_PHASES, f"{name}: "
        )
        runs[name] = run_of(config, {"images": CIFAR100}, end_of(settings)) | {
            "conversion": converted if second else None,
            "initial": str if second else None,
        }
    names = mismatches({"runs": sorted(record["runs"])}, {"runs": sorted(runs)})
    return names + mismatches(record, {"claim": row.claim, "runs": runs})


def run_of(config: Any, facts: dict[str, Any], end: dict[str, Any]) -> dict[str, Any]:
    """The document of a run that was made by committed code, and tested on all test images.

    Args:
        config: The type of its `config.json`.
        facts: What else `run.json` holds.
        end: What else `result.json` holds.
    """
    session = {"git": part({"commit": str, "changed": False})}
    facts = {**facts, "sittings": list[part(session)], **session}  # type: ignore[misc]
    one_commit = such_that("one commit in all training sessions", _has_one_commit)
    tested = {"test_images": TEST_IMAGES, "test_accuracy": Accuracy}
    return {
        "config": config,
        "run": Annotated[part(facts), one_commit],
        "result": end | tested,
    }


def _has_one_commit(made: Any) -> bool:
    return len({session.git.commit for session in (made, *made.sittings)}) == 1


def end_of(settings: RunSettings) -> dict[str, Any]:
    """What `result.json` says of the end of a run that took all the steps of its settings."""
    training = settings.training
    steps = training.epochs * (TRAINING_IMAGES // training.batch_size)
    return {"status": "finished", "step": steps, "steps": steps}


def like(
    settings: RunSettings, held: dict[str, Any], free: Mapping[str, Any] = FREE, run: str = ""
) -> Any:
    """The type of a `config.json` that has these settings.

    Args:
        settings: The paper's.
        held: A document of what it must hold beside them.
        free: What need not be the paper's, as for `differences`.
        run: Of which run messages speak.
    """

    def checked(config: dict[str, Any]) -> dict[str, Any]:
        found = differences(settings, config, free) + mismatches(config, held)
        if found:
            raise ValueError("; ".join(run + why for why in found))
        return config

    return Annotated[dict[str, dict[str, Any]], AfterValidator(checked)]


def pruning_of(source: RunSettings, record: dict[str, Any]) -> dict[str, Any]:
    """What the paper's pruning is in a record.

    Args:
        source: The settings of the run that is to be pruned.
        record: As `PRUNED` says.
    """
    model: Any = source.model
    given = zip(model.heads, chain(record["pruning"]["kept"], repeat([])), strict=False)
    kept = [sorted({*layer} & {*range(1, heads + 1)}) for heads, layer in given]
    removed = [heads - len(layer) for heads, layer in zip(model.heads, kept, strict=True)]
    return {
        "source": {
            "config": like(source, {}, run="of the run that was pruned "),
            "result": end_of(source),
            "images_sha256": record["run"]["images"]["sha256"],
        },
        "thresholds": equal(THRESHOLDS),
        "kept": kept,
        "removed": Annotated[
            list[int],
            such_that(f"{removed}, with a head", lambda given: given == removed and any(given)),
        ],
        "epochs_before": source.training.epochs,
        "after": record["result"]["test_accuracy"],
    }
