"""The experiments that rows of the ledger stand for, and which records of runs count for them.

A run counts if its settings are those of the paper, it is finished, it was made by committed code,
on all images of an official archive, and it began with the parameters that its seed drew, or with
those that the row asks for. A record is text, and says what it says: what was changed by hand in a
consistent way is found only by whoever has the checkpoint, or repeats the run.

**When an accuracy is reproduced.** Two models of the same accuracy p, tested on n images each,
agree up to the chance of the draw: the difference of the two fractions has the standard deviation
√(2p(1 - p)/n). Within three of them, and the half unit to which the paper rounds, one run of each
cannot be told from the other: `margin`. Where the paper prints no accuracy, there is none to
reproduce: the verdict stays "not run", and the record is shown as what was measured.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, cast

from convattn.files import brief
from convattn_lab.data.download import ARCHIVES
from convattn_lab.models.settings import EncoderSettings
from convattn_lab.records.experiments import (
    ATTENTION,
    CONVOLUTION,
    FIRST,
    FREE,
    FREE_OF_TWO_PHASES,
    PRINTED,
    RATES_ONE,
    RATES_TWO,
    RUNS,
    THRESHOLDS,
    WITH,
    WITHOUT,
    differences,
    paper_runs,
)
from convattn_lab.runs.settings import RunSettings
from convattn_ledger import EvidenceFailed, Run, Verdict

TRAINING_IMAGES, TEST_IMAGES = 50_000, 10_000
# Of the training images as published, x/255, to the four decimals in which they are usually given.
MEAN, DEVIATION = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)
HALF_TENTH, HALF_HUNDREDTH = 0.0005, 0.00005  # of a per cent, to which C20 and L21 print
MAX_REASONS = 16
ABSENT = object()


class Condition(NamedTuple):
    """What holds for every value that counts, and the words for it."""

    words: str
    holds: Callable[[Any], bool]


def _is_accuracy(value: Any) -> bool:
    is_fraction = type(value) in (int, float) and 0 <= value <= 1
    return is_fraction and round(value * TEST_IMAGES) / TEST_IMAGES == value


def _near(printed: tuple[float, ...]) -> Condition:
    def holds(numbers: Any) -> bool:
        floats = isinstance(numbers, list) and all(isinstance(number, float) for number in numbers)
        return floats and tuple(round(number, 4) for number in numbers) == printed

    return Condition(f"{printed}, to four decimals", holds)


TEXT = Condition("text", lambda value: isinstance(value, str))
INTEGER = Condition("an integer", lambda value: type(value) is int)
ACCURACY = Condition(f"a fraction of {TEST_IMAGES} images", _is_accuracy)
IMAGES: dict[str, Any] = {
    "note": "",
    "train": TRAINING_IMAGES,
    "validation": 0,
    "test": TEST_IMAGES,
}
CIFAR10: dict[str, Any] = {
    **{"name": "CIFAR-10", "archive_md5": ARCHIVES["cifar10-binary"].md5, **IMAGES},
    **{"mean": _near(MEAN), "std": _near(DEVIATION)},
}
CIFAR100: dict[str, Any] = {
    **{"name": "CIFAR-100", "archive_md5": ARCHIVES["cifar100-binary"].md5, **IMAGES},
    "classes": 100,
}


def _value_at(record: Any, name: str, default: Any = None) -> Any:
    """What a JSON document holds under a dotted name."""
    for key in name.split("."):
        if not isinstance(record, dict) or key not in record:
            return default
        record = record[key]
    return record


def _mismatches(record: Any, expected: Mapping[str, Any], prefix: str = "") -> list[str]:
    """Where a record is not what a table says; what it holds beside that is passed over.

    Args:
        record: Anything that was read as JSON.
        expected: Dotted names, and the value or `Condition` of each; or a table for what it holds.
        prefix: Before all names.

    >>> _mismatches({"seed": "0", "images": {"test": 5}}, {"seed": INTEGER, "images": {"test": 10}})
    ["seed='0', but expected an integer", 'images.test=5, but expected 10']
    """
    reasons = []
    for name, requirement in expected.items():
        value = _value_at(record, f"{prefix}{name}", ABSENT)
        if isinstance(requirement, dict):
            reasons += _mismatches(record, requirement, f"{prefix}{name}.")
        elif value is ABSENT:
            reasons.append(f"{prefix}{name} is missing")
        elif isinstance(requirement, Condition):
            if not requirement.holds(value):
                reasons.append(f"{prefix}{name}={brief(value)}, but expected {requirement.words}")
        elif value != requirement or isinstance(value, bool) != isinstance(requirement, bool):
            reasons.append(f"{prefix}{name}={brief(value)}, but expected {brief(requirement)}")
    return reasons


def _other_settings(
    settings: RunSettings, record: Any, name: str = "config", free: Sequence[str] = FREE
) -> list[str]:
    """Where the settings that a record holds under a name are not the paper's."""
    config = _value_at(record, name)
    reasons = differences(settings, config if isinstance(config, dict) else {}, free)
    return [f"{name}.{reason}" for reason in reasons]


def finished(settings: RunSettings) -> dict[str, Any]:
    """What `result.json` holds of a run that took all the steps of its settings."""
    steps = settings.training.epochs * (TRAINING_IMAGES // settings.training.batch_size)
    return {"status": "finished", "step": steps, "steps": steps}


def _complete_run(settings: RunSettings, images: Mapping[str, Any], commit: Any) -> dict[str, Any]:
    """What a record holds of a run of committed code that was tested on all test images."""
    git = {"git": {"commit": commit, "changed": False}}

    def of_one_commit(sessions: Any) -> bool:
        return isinstance(sessions, list) and not any(
            _mismatches(session, git) for session in sessions
        )

    return {
        "run": {
            "images": images,
            "git": {"commit": TEXT, "changed": False},
            "sittings": Condition("one commit in all training sessions, unchanged", of_one_commit),
        },
        "result": {
            **finished(settings),
            **{"test_images": TEST_IMAGES, "test_accuracy": ACCURACY},
        },
    }


def margin(printed: float, half_unit: float = HALF_TENTH) -> float:
    """How far apart two runs of the same accuracy may be tested: see above.

    >>> round(margin(0.938), 4)
    0.0107
    """
    return 3 * math.sqrt(2 * printed * (1 - printed) / TEST_IMAGES) + half_unit


class RecordedExperiment(ABC):
    """What `Row` and `Pipeline` share, both a `convattn_ledger.evidence.experiments.Experiment`."""

    claim: str
    command: str
    recorded_by: Any  # a text, or a property that gives one

    @abstractmethod
    def reasons_against(self, record: Any) -> list[str]:
        """Why a record does not count; nothing if it does."""

    @abstractmethod
    def figures(self, record: Any) -> str:
        """The figures of a record that counts beside the paper's."""

    @abstractmethod
    def verdict_of(self, record: Any) -> Verdict:
        """The verdict that a record supports which counts."""

    def judge(self, record: Any, verdict: Verdict) -> str:
        """Compare a record with the row.

        Args:
            record: Anything that was read as JSON.
            verdict: Of the row.

        Returns:
            The figures beside the paper's.

        Raises:
            EvidenceFailed: For a record that does not count, and for a verdict that the figures do
                not support.
        """
        if reasons := self.reasons_against(record):
            raise EvidenceFailed(self.refusal("this record", reasons))
        figures, right = self.figures(record), self.verdict_of(record)
        if verdict is not right:
            raise EvidenceFailed(
                f"{figures}: the verdict is '{right}', but the row says '{verdict}'"
            )
        return figures

    def refusal(self, what: str, reasons: Sequence[str]) -> str:
        """Why something does not count for the row, and what to do."""
        more = len(reasons) - MAX_REASONS
        why = "; ".join(reasons[:MAX_REASONS]) + (f" and {more} more" if more > 0 else "")
        return (
            f"{what} does not count for {self.claim}: {why}; run `{self.command}`, and then "
            f"`{self.recorded_by}`"
        )


@dataclass(frozen=True)
class Row(RecordedExperiment):
    """An experiment of C20.

    Attributes:
        claim: The row's id.
        printed: The accuracy, or None if none is printed.
        settings: The paper's.
        command: What makes a run that can be submitted for the row.
        parameters: How many the paper prints, or exactly how many there are.
        first_heads: Whether the first heads are drawn as printed, too.
        source: The settings of the run whose heads were pruned for it, for a row about that; the
            heads of `settings` are then those that the paper was left with, and its epochs the
            most.
    """

    claim: str
    printed: float | None
    settings: RunSettings
    command: str
    parameters: str | int
    first_heads: bool = False
    source: RunSettings | None = None

    @property
    def recorded_by(self) -> str:
        """What puts a run on record."""
        return f"python experiments/record.py RUN {self.claim}"

    def reasons_against(self, record: Any) -> list[str]:
        """Why a record does not count; nothing if it does."""
        if not isinstance(record, dict):
            return [f"record={brief(record)}, but expected an object"]
        settings, began = self.settings, dict[str, Any](pruning=None, initial=None)
        reasons = []
        if self.source is not None:
            settings, pruning = _pruning_of(self.source, settings, record)
            began = {"pruning": pruning, "initial": TEXT}
            reasons = _other_settings(self.source, record, "pruning.source.config")
        complete = _complete_run(settings, CIFAR10, _value_at(record, "run.git.commit"))
        also_required = {"run.seed": INTEGER, "result.device": TEXT}
        also_required["config.training.compute_dtype"] = TEXT
        expected: dict[str, Any] = {"claim": self.claim, **began, **complete, **also_required}
        return reasons + _other_settings(settings, record) + _mismatches(record, expected)

    def figures(self, record: Any) -> str:
        """The accuracy of a record that counts beside the paper's."""
        accuracy = record["result"]["test_accuracy"]
        measured = (
            f"{100 * accuracy:.2f} % of {TEST_IMAGES:,} test images (seed {record['run']['seed']}, "
            f"{record['config']['training']['compute_dtype']}, {record['result']['device']})"
        )
        if self.printed is None:
            return f"{measured}; no accuracy is printed that it could reproduce"
        return (
            f"{measured}, printed {100 * self.printed:.1f} %, "
            f"{100 * abs(accuracy - self.printed):.2f} points apart (at most "
            f"{100 * margin(self.printed):.2f} counts as reproduced)"
        )

    def verdict_of(self, record: Any) -> Verdict:
        """The verdict that a record supports which counts."""
        if self.printed is None:
            return Verdict.NOT_RUN
        abs_diff = abs(record["result"]["test_accuracy"] - self.printed)
        return Verdict.REPRODUCED if abs_diff <= margin(self.printed) else Verdict.NOT_REPRODUCED

    def before_training(self, run: Run) -> str:
        """The model has as many parameters as printed; its heads begin as printed, if they are."""
        from convattn_lab.models.first_parameters import require_first_heads, require_size

        encoder = cast(EncoderSettings, self.settings.model)
        size = require_size(encoder, self.parameters)
        return f"{size}; {require_first_heads(encoder, run)}" if self.first_heads else size


def _pruning_of(
    source: RunSettings, after: RunSettings, record: Any
) -> tuple[RunSettings, dict[str, Any]]:
    """With the heads and epochs of a record, the settings of a pruned run; and its pruning."""
    before, model = cast(EncoderSettings, source.model).heads, cast(EncoderSettings, after.model)
    layers = _value_at(record, "pruning.kept")
    layers = [*(layers if isinstance(layers, list) else []), *[None] * len(before)]
    remaining = [
        [head for head in range(1, count + 1) if isinstance(layer, list) and head in layer]
        for count, layer in zip(before, layers, strict=False)
    ]
    removed = [count - len(layer) for count, layer in zip(before, remaining, strict=True)]
    some = Condition(f"{removed}, with a head", lambda counts: counts == removed and any(counts))
    stored, epochs = _value_at(record, "config.training.epochs"), after.training.epochs
    training = replace(
        after.training,
        epochs=min(stored, epochs) if INTEGER.holds(stored) and stored > 0 else epochs,
    )
    model = replace(model, heads=tuple(map(len, remaining)))
    return replace(after, model=model, training=training), {
        "source": {
            "result": finished(source),
            "images_sha256": _value_at(record, "run.images.sha256"),
        },
        **{"thresholds": THRESHOLDS, "kept": remaining, "removed": some},
        **{
            "epochs_before": source.training.epochs,
            "after": _value_at(record, "result.test_accuracy"),
        },
    }


@dataclass(frozen=True)
class Pipeline(RecordedExperiment):
    """The experiment of L21: the runs of `paper_runs`, whose accuracies are `PRINTED`.

    A record holds five runs of one seed, as `experiments/two_phase.py compare` makes them: the
    first phase, the second with and without warm-up, and either phase alone for the epochs of both.
    Of all but the first the paper prints an accuracy. The row is reproduced if all four are within
    their margins, and if the two phases beat either alone.

    Attributes:
        claim: The row's id.
        command: What makes runs that can be submitted for the row.
        recorded_by: What puts them on record.
    """

    claim: str = "L21.twophase"
    command: str = (
        "python experiments/two_phase.py compare --config cmhsa5 --starts limit-40 --seeds 0 "
        "--download cifar100-binary"
    )
    recorded_by: str = "python experiments/two_phase.py record FOLDER/seed-0"

    def reasons_against(self, record: Any) -> list[str]:
        """Why a record does not count; nothing if it does."""
        runs = _value_at(record, "runs")
        names = {"runs": sorted(runs) if isinstance(runs, dict) else runs}
        reasons = _mismatches(names, {"runs": sorted(RUNS)})
        reasons += _mismatches(record, {"claim": self.claim})
        for name, settings in paper_runs().items():
            run, second = f"runs.{name}", name in (WITH, WITHOUT)
            rates, began = (RATES_TWO, TEXT) if second else (RATES_ONE, None)
            converted: dict[str, Any] = {
                "source": {key: _value_at(runs, f"{FIRST}.{key}") for key in ("config", "result")},
                "conversion": {"kind": "limit", "logit": 40.0},
                "check": {"passed": True},
            }
            complete = _complete_run(settings, CIFAR100, _value_at(record, f"{run}.run.git.commit"))
            expected: dict[str, Any] = {
                "config.training.learning_rate": Condition(f"one of {rates}", rates.__contains__),
                **{"conversion": converted if second else None, "initial": began},
                **complete,
            }
            reasons += _other_settings(settings, record, f"{run}.config", FREE_OF_TWO_PHASES)
            reasons += _mismatches(record, expected, f"{run}.")
        return reasons

    def figures(self, record: Any) -> str:
        """The accuracies of a record that counts beside the paper's."""
        return ", ".join(
            f"{name} {100 * accuracy:.2f} % (printed {100 * PRINTED[name]:.2f} %)"
            for name, accuracy in _accuracies(record).items()
        )

    def verdict_of(self, record: Any) -> Verdict:
        """The verdict that a record supports which counts."""
        accuracies = _accuracies(record)
        near = all(
            abs(accuracies[name] - printed) <= margin(printed, HALF_HUNDREDTH)
            for name, printed in PRINTED.items()
        )
        alone = max(accuracies[CONVOLUTION], accuracies[ATTENTION])
        better = min(accuracies[WITH], accuracies[WITHOUT]) > alone
        return Verdict.REPRODUCED if near and better else Verdict.NOT_REPRODUCED


def _accuracies(record: Any) -> dict[str, float]:
    return {name: record["runs"][name]["result"]["test_accuracy"] for name in PRINTED}
