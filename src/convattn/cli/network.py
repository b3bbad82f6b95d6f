"""``convattn convert --network``: a trained ResNet as a network of attention layers."""

import os.path
import time
from pathlib import Path
from typing import Any

from convattn.cli.convert import finish
from convattn.cli.output import require_outputs, run_files
from convattn.cli.running import UsageError

DEFAULT_NAME = "attention.safetensors"


def convert_network(run: Path, output: Path | None, leak: float, json: Path | None) -> int:
    """Fold and convert a finished run's ResNet, check it, and write it.

    Args:
        run: The folder of the run.
        output: The file to write; ``attention.safetensors`` in the run's folder if ``None``.
        leak: The fraction of each head's attention that is spread evenly.
        json: Where to write the numbers.

    Returns:
        0, or 1 if a logit or a layer was further off than its bound, or a test image changed its
        class, and then nothing is written.

    Raises:
        UsageError: If this is not a finished run of a ResNet, or a file cannot be written.
    """
    if not os.path.isdir(run):
        raise UsageError(f"--network got {run}, which is no folder; expected that of a run")
    target = output or run / DEFAULT_NAME
    if target.suffix != ".safetensors":
        raise UsageError(f"--output got {target}, but expected a name in .safetensors")
    require_outputs({"--output": target, "--json": json}, {"--network": run_files(run)})
    started = time.monotonic()
    try:
        numbers, content = _convert(run, leak)
    except ValueError as error:
        raise UsageError(str(error)) from error
    numbers |= {"output": str(target), "seconds": round(time.monotonic() - started, 1)}
    passed = all(numbers[part]["passed"] for part in ("float64", "float32", "test"))
    return finish(target, content, passed, json, numbers, _lines(numbers))


def _convert(path: Path, leak: float) -> tuple[dict[str, Any], bytes]:
    """The numbers, and the content of the file."""
    from concurrent.futures import ThreadPoolExecutor

    from convattn.lab.analysis.resnet_comparison import (
        BATCH,
        attention_layers,
        batches,
        compare_in_float64,
        compare_logits,
        convert_resnet,
        logits_of,
        same_classes,
    )
    from convattn.networks.network_file import network_bytes

    run, model, recorded = finished_resnet(path)
    mean, std, test = run.images.mean, run.images.std, run.images.test
    few = next(batches(test.images))
    with ThreadPoolExecutor(2) as beside:  # compilations and convolutions each take one core
        wide = beside.submit(compare_in_float64, model, mean, std, few, leak=leak)
        converted = convert_resnet(model, mean, std, leak=leak)
        trained = beside.submit(logits_of, converted.folded, converted.model_run, test.images)
        found = compare_logits(converted, few)
        seen = logits_of(converted.folded, converted.attention_run, test.images)
        classes = same_classes(trained.result(), seen, test.labels)
        in_float64 = wide.result()
    images = min(BATCH, len(test))
    numbers = {
        "run": str(path),
        "when": run.when,
        "leak": leak,
        "layers": {
            name: {"heads": layer.heads, "maps": list(layer.output.shape), "stride": layer.stride}
            for name, layer in attention_layers(converted.attention).items()
            if layer.output is not None
        },
        "float64": _logits(in_float64, images),
        "float32": _logits(found, images),
        "test": {
            "images": classes.images,
            "correct": classes.correct,
            "attention_correct": classes.attention_correct,
            "recorded_accuracy": recorded,
            "same_class": classes.same,
            "difference": classes.difference,
            "smallest_margin": classes.margin,
            "passed": classes.passed,
        },
    }
    return numbers, network_bytes(converted.attention)


def _logits(found: Any, images: int) -> dict[str, Any]:
    """What a comparison of logits showed on so many images; what fills the batch is none."""
    return {
        "images": images,
        "difference": float(found.difference[:images].max()),
        "bound": float(found.bound[:images].max()),
        "largest_share": max(found.layers.values()),
        "layer": max(found.layers, key=found.layers.__getitem__),
        "certain": int(found.certain[:images].sum()),
        "passed": found.passed,
    }


def finished_resnet(path: Path) -> tuple[Any, Any, float]:
    """A run, its ResNet, and the test accuracy on record.

    Args:
        path: The folder of the run.

    Raises:
        ValueError: If it is not a finished run of a ResNet, or has no whole checkpoint.
    """
    import warnings

    from convattn.lab.analysis.restored_run import restore_run
    from convattn.lab.analysis.run_summary import read_summary
    from convattn.lab.models.settings import ResNetSettings

    summary = read_summary(path)
    if not isinstance(summary.settings.model, ResNetSettings):
        kind = type(summary.settings.model).__name__.removesuffix("Settings").lower()
        raise ValueError(
            f"{path} is a run of the model {kind!r}, whose layers are attention or have no "
            "convolution to convert; --network takes a run of a ResNet, such as "
            "`python experiments/cifar.py --config resnet18` makes"
        )
    if not summary.finished or summary.accuracy is None:
        raise ValueError(
            f"{path} is {summary.accuracy_text}, but only a finished run is converted; go on with "
            f"it first: python experiments/cifar.py --resume {path}"
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a damaged checkpoint; the one before would be another's
        run = restore_run(path)
    epochs = summary.settings.training.epochs
    if summary.settings.training.select != "best" and run.epoch != epochs:
        raise ValueError(
            f"the newest whole checkpoint of {path} is of {run.when} of {epochs}: the last one is "
            "damaged; train the run anew"
        )
    return run, run.model, summary.accuracy


def _lines(numbers: dict[str, Any]) -> list[str]:
    test, layers = numbers["test"], numbers["layers"]
    heads = sorted({layer["heads"] for layer in layers.values()})
    return [
        f"{numbers['run']}, {numbers['when']}: {len(layers)} convolutions -> attention layers of "
        f"{' and '.join(map(str, heads))} heads, leak {numbers['leak']:g}",
        *(
            f"  {name}  {layer['heads']} heads  {tuple(layer['maps'])}  stride {layer['stride'][0]}"
            for name, layer in layers.items()
        ),
        _logits_line("float64", numbers["float64"]) + _verdict(numbers["float64"]),
        _logits_line("float32", numbers["float32"]),
        f"float32, test images with the same class: {test['same_class']:,} of {test['images']:,}; "
        f"correct: {test['correct']:,} as trained, {test['attention_correct']:,} as attention; "
        f"largest difference {test['difference']:.3g}, smallest margin "
        f"{test['smallest_margin']:.3g}",
        f"in {numbers['seconds']} s",
    ]


def _logits_line(dtype: str, found: dict[str, Any]) -> str:
    return (
        f"{dtype}, logits of {found['images']} images: largest difference "
        f"{found['difference']:.3g}, {'within' if found['passed'] else 'NOT WITHIN'} the derived "
        f"bound {found['bound']:.3g}; by layers at most {found['largest_share']:.2g} of the bound "
        f"({found['layer']}); classes certain to agree: {found['certain']} of {found['images']}"
    )


def _verdict(found: dict[str, Any]) -> str:
    return ": one function, as far as float64 can tell" if found["passed"] else ""
