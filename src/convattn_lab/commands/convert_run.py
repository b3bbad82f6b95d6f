"""The folder of a run where a command takes a network: its ResNet, on its own test images."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from convattn.cli.convert_network import Conversion, ConvertNetwork
from convattn.cli.named_network import NamedNetwork
from convattn.cli.network_report import close, report_lines, report_numbers

# Images of a run on which both networks are compared, and in a batch of its test images.
SAMPLE_SIZE = 10


def trained_network(folder: Path, dtype: str) -> NamedNetwork:
    """The ResNet of a run, as a function of bytes or of the same numbers as floats.

    Raises:
        ValueError: If this is not a finished run of a ResNet.
    """
    from convattn_lab.analysis.finished_resnet import finished_resnet
    from convattn_lab.models.resnet_function import image_function

    run, model, recorded = finished_resnet(folder)
    test = run.images.test.images
    function = image_function(model, run.images.mean, run.images.std, dtype)
    note = f"{folder}, {run.when}, test accuracy {recorded:.3g}, on its {len(test)} test images"
    return NamedNetwork(function, test.shape[1:], (note,), images=test)


def converted_run(command: ConvertNetwork, folder: Path) -> Conversion:
    """The ResNet of a run, on its test images: in float64, in float32, and by all its classes.

    Raises:
        ValueError: If this is not a finished run of a ResNet.
    """
    import jax
    import jax.numpy as jnp
    import numpy as np

    from convattn.networks.transformation.attention_of import attention_of
    from convattn_lab.analysis.finished_resnet import finished_resnet
    from convattn_lab.models.resnet_function import image_function

    run, model, recorded = finished_resnet(folder)
    test, scale = run.images.test, (run.images.mean, run.images.std)
    samples = jnp.asarray(test.images[:SAMPLE_SIZE])
    options = {"uniform_weight": command.uniform_weight}
    with jax.enable_x64(True):
        function64 = image_function(model, *scale, np.float64)
        float64_report = attention_of(function64, samples, **options).report
    function = image_function(model, *scale)
    attention = attention_of(function, samples, **options)
    layers, apply, report = attention
    trained = logits_of(function, test.images)
    classes = _same_classes(
        trained, logits_of(lambda images: apply(layers, images), test.images), test.labels
    )
    passed = close(float64_report, "float64") and close(report, "float32") and classes["passed"]
    numbers = {
        "when": run.when,
        **options,
        "float64": report_numbers(float64_report),
        **report_numbers(report),
        "test": {**classes, "recorded_accuracy": recorded},
        "passed": passed,
    }
    text = report_lines(float64_report, "float64")
    lines = [
        f"{folder}, {run.when}, on {len(samples)} test images",
        *text[:1],
        text[1] + (": one function, as far as float64 can tell" if float64_report.passed else ""),
        *text[2:],
        *report_lines(report, "float32")[1:],
        f"float32, test images with the same class: {classes['same_class']:,} of "
        f"{classes['images']:,}; correct: {classes['correct']:,} as trained, "
        f"{classes['attention_correct']:,} as attention; largest difference "
        f"{classes['difference']:.3g}, smallest margin {classes['smallest_margin']:.3g}",
    ]
    return Conversion(command, attention, samples, passed, trained[: len(samples)], lines, numbers)


def logits_of(function: Callable[[Any], Any], images: Any) -> Any:
    """The logits of all images, in batches of `SAMPLE_SIZE`, the last filled with zeros."""
    import jax
    import numpy as np

    compiled, logits = jax.jit(function), []
    for start in range(0, len(images), SAMPLE_SIZE):
        batch = images[start : start + SAMPLE_SIZE]
        filled = np.pad(batch, [(0, SAMPLE_SIZE - len(batch)), *[(0, 0)] * (batch.ndim - 1)])
        logits.append(np.asarray(compiled(filled)))
    return np.concatenate(logits)[: len(images)]


def _same_classes(of_model: Any, of_attention: Any, labels: Any) -> dict[str, Any]:
    """What the logits of both say.

    >>> import numpy as np
    >>> logits = np.array([[3.0, 1.0], [0.0, 0.5]])
    >>> found = _same_classes(logits, logits + [0.0, 1.0], np.array([0, 0]))
    >>> [found[key] for key in ("correct", "same_class", "difference", "smallest_margin", "passed")]
    [1, 2, 1.0, 0.5, True]
    """
    import numpy as np

    first, other = of_model.argmax(axis=1), of_attention.argmax(axis=1)
    wide = of_model.astype(np.float64)
    two = np.sort(wide, axis=1)[:, -2:]
    return {
        "images": len(labels),
        "correct": int((first == labels).sum()),
        "attention_correct": int((other == labels).sum()),
        "same_class": int((first == other).sum()),
        "difference": float(np.abs(wide - of_attention).max()),
        "smallest_margin": float((two[:, 1] - two[:, 0]).min()),
        "passed": bool((first == other).all()),
    }
