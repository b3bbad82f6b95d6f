"""The check between the phases: is the attention network still the network that was trained?

It goes by the derived bound (`deviation`) on some test images: each layer's attention against its
convolution at the same input, and the logits of both networks. What is only counted, on all test
images, is how many change their class; at M = 10 that may be several, and the check passes.
"""

import time
from dataclasses import asdict, dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float, Int

from convattn.data.cifar10_slice import Images
from convattn.nnx.vision_transformer.model import VisionTransformer
from convattn_lab.training.images import TrainingImages, predicted_classes
from convattn_lab.training.settings import TrainingSettings
from convattn_lab.two_phase.deviation import ConversionDeviation, deviation
from convattn_lab.two_phase.gradient_norms import gradient_norms
from convattn_lab.two_phase.settings import ConversionSettings


class ConversionFailed(RuntimeError):
    """The converted network is not the one that was trained, so the second phase must not begin."""


@dataclass(frozen=True)
class ConversionReport:
    """What the check saw.

    Attributes:
        conversion: How it was converted, and with how many heads.
        check: The images of the check, whether it passed; the largest difference of logits; of
            those that have a bound the largest bound, and the largest difference in units of its
            own bound; for each layer the same.
        test: Of all test images how many there are, how many changed their class, and the accuracy
            before and after.
        gradients: For each group of parameters, on one batch of training images.
        seconds: Of the conversion, and of the check.
    """

    conversion: dict[str, Any]
    check: dict[str, Any]
    test: dict[str, Any]
    gradients: dict[str, dict[str, float]]
    seconds: dict[str, float]

    def to_json(self) -> dict[str, Any]:
        """As `conversion.json` holds it."""
        return asdict(self)


def check_conversion(
    one: VisionTransformer,
    two: VisionTransformer,
    images: TrainingImages,
    conversion: ConversionSettings,
    training: TrainingSettings,
    *,
    count: int,
    seconds: float,
) -> ConversionReport:
    """Hold a network against what it was converted from.

    Args:
        one, two: Computing in float32.
        training: Of the second phase.
        count: Test images of the check.
        seconds: That the conversion took.

    Raises:
        ConversionFailed: Where the outputs differ by more than the bound.
    """
    began = time.monotonic()
    inputs, _ = _first_images(images, images.test, count)
    measured = deviation(one, two, inputs, conversion)
    if not measured.passed:
        raise ConversionFailed(failure(measured, conversion))
    before, after = (predicted_classes(model, images) for model in (one, two))
    labels = np.asarray(images.test.labels)
    batch = _first_images(images, images.train, training.batch_size)
    gradients = gradient_norms(two, *batch, label_smoothing=training.label_smoothing)
    return ConversionReport(
        {**asdict(conversion), "heads": two.settings.heads, "ring": two.settings.ring},
        deviation_record(measured),
        {
            "images": len(images.test),
            "changed": int((before != after).sum()),
            "before": float((before == labels).mean()),
            "after": float((after == labels).mean()),
        },
        {name: asdict(group) for name, group in gradients.items()},
        {"conversion": seconds, "check": time.monotonic() - began},
    )


def deviation_record(measured: ConversionDeviation) -> dict[str, Any]:
    """The figures of the check, for JSON."""
    return {
        "images": len(measured.logits),
        "passed": measured.passed,
        "largest_logit": float(np.abs(measured.logits).max()),
        "seen": measured.difference,
        "bound": measured.bound,
        "share": max(gap / bound if gap else 0.0 for gap, bound in measured.entries),
        "layers": [asdict(layer) for layer in measured.layers],
    }


def failure(measured: ConversionDeviation, conversion: ConversionSettings) -> str:
    """What a failed check says."""
    layers = [
        f"layer {number} differs by up to {layer.share:.3g} times its bound"
        for number, layer in enumerate(measured.layers, 1)
        if not layer.share <= 1
    ]
    above = sum(not gap <= bound for gap, bound in measured.entries)
    logits = [f"{above} of {len(measured.entries)} logits are outside their bounds"] * bool(above)
    if not measured.entries:
        logits = [f"there is no bound on the logits, for {measured.without_rule}"]
    if measured.changed:
        logits.append(f"{', '.join(measured.changed)} changed, which should be kept")
    how = f"M = {conversion.logit}" if conversion.kind == "limit" else f"ε = {conversion.leak}"
    return (
        f"the converted network ({conversion.kind}, {how}) is not the one that was trained: "
        f"{'; '.join([*layers, *logits])}. Nothing was trained. The parameters of the first phase "
        "may be damaged, or this is a defect in convattn; please report it"
    )


def in_float32(settings: TrainingSettings) -> TrainingSettings:
    """The settings with products in float32, in which the check is derived.

    >>> in_float32(TrainingSettings(compute_dtype="bfloat16")).compute_dtype
    'float32'
    """
    return replace(settings, compute_dtype="float32")


def _first_images(
    images: TrainingImages, split: Images, count: int
) -> tuple[Float[Array, "batch height width channels"], Int[Array, " batch"]]:
    """The first images of a part, normalised, in float32; and their labels."""
    arrays = jax.device_put(images.arrays(split))
    indices = jnp.arange(min(count, len(split)))
    return images.load(arrays, indices, None, jnp.float32)
