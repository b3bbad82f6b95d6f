"""Writes a pair: both networks as ONNX, the property, and what is certified of it."""

import json
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from math import ceil, floor, log2
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from convattn.compile import to_vision_transformer
from convattn.compile.box_values import BoxValues
from convattn.compile.reader import read_network
from convattn.files import parse_json, read_file, write_file
from convattn.networks.transformation.attention_of import attention_of
from verifier_twins.catalogue import Pair
from verifier_twins.exact import Certified, logits, network_rows, rational
from verifier_twins.networks import Network
from verifier_twins.onnx_files import digest, run_network, write_network
from verifier_twins.properties import (
    Condition,
    certified_least,
    conditions,
    least_found,
    require_parsed,
    vnnlib,
)

SCHEMA, DTYPE = 1, "float32"
PIXELS = 256  # parts of the interval from 0 to 1
MARGIN = 8  # bounds between a threshold and what is certified
LEAST_ROOM = 2  # bounds that must be left in the end
IMAGES = 16  # drawn in the box, beside its corners
FILES = ("cnn.onnx", "twin.onnx", "property.vnnlib", "property-2.vnnlib")
Logits = Callable[[Any], Any]


def box_of(pair: Pair) -> tuple[np.ndarray, np.ndarray]:
    """The box `[channels, rows, columns]`, of pixels that are multiples of 1/256."""
    middle = np.random.default_rng(pair.seed).integers(48, PIXELS - 47, pair.network.image)
    return (middle - pair.radius) / PIXELS, (middle + pair.radius) / PIXELS


def twin_of(
    pair: Pair, network: Network, lower: np.ndarray, upper: np.ndarray
) -> tuple[Logits, np.ndarray, np.ndarray, dict[str, Any]]:
    """The twin; bounds on its logits and on the network's own, in float32; what it is."""
    example = jnp.asarray((lower + upper)[None] / 2, DTYPE)
    if pair.twin == "transformer":
        compiled = to_vision_transformer(network, example, channels_first=True, **pair.options)
        assert compiled.report is not None
        bound = compiled.bound_on_box(lower, upper)
        size = compiled.report.size
        facts = {"blocks": size.blocks, "width": size.width, "heads": size.num_heads}
        return compiled.unrolled, bound.transformer, bound.network, facts | {"tokens": size.tokens}
    layers, apply, _ = attention_of(network, example, backend="dense")
    shapes = {name: images.shape for name, images in apply.inputs(layers, example).items()}
    sides = (np.moveaxis(side, 0, -1) for side in (lower, upper))
    values = BoxValues(read_network(network, (example,), (1, 1), True), *sides)
    rounded = values.evaluation_error(DTYPE, [(layers[name], shapes[name]) for name in layers])
    heads = {"layers": len(layers), "heads": sum(layer.heads for layer in layers.values())}
    return (lambda images: apply(layers, images)), rounded, values.evaluation_error(DTYPE), heads


def decided(
    pair: Pair, lower: np.ndarray, upper: np.ndarray
) -> tuple[Network, tuple[Condition, ...], Fraction, list[Fraction] | None]:
    """The network and the property, its value, and the counterexample if there is one.

    The bias or the threshold is such that what is certified decides by `MARGIN` bounds: a property
    that holds does so by the lower bound of all values, one that is violated by the smallest value
    at a corner.
    """
    network, asked = pair.network, conditions(pair.asks, len(pair.network.bias))
    layers, box = network_rows(network), (rational(lower), rational(upper))
    certified = Certified(layers, *box)
    _, *bounds, _ = twin_of(pair, network, lower, upper)
    widest = max(condition.room(bounds[0] + bounds[1]) for condition in asked)
    margin = Fraction(2) ** ceil(log2(MARGIN * widest))
    grid = margin / 2
    counterexample = None
    if pair.expected == "holds":
        value = certified_least(certified, layers, asked)
        shift = grid * ceil((margin - value) / grid)
    else:
        value, counterexample = least_found(certified, layers, asked)
        shift = grid * floor((-margin - value) / grid)
    if pair.asks == "class":
        bias = network.bias.copy()
        bias[0] += float(shift)
        return replace(network, bias=bias), asked, value + shift, counterexample
    return network, (Condition(0, -shift),), value + shift, counterexample


def write_pair(pair: Pair, folder: Path) -> dict[str, Any]:
    """Write the files of a pair into its folder, `pair.json` last; what it holds.

    Raises:
        ValueError: If a bound leaves no room, or a network differs by more than it in onnxruntime.
    """
    lower, upper = box_of(pair)
    network, asked, value, counterexample = decided(pair, lower, upper)
    twin, of_twin, of_network, facts = twin_of(pair, network, lower, upper)
    total = of_twin + of_network
    room = float(abs(value)) / max(condition.room(total) for condition in asked)
    if room < LEAST_ROOM:
        raise ValueError(f"{pair.name}: a room of {room:.2g} bounds, but expected {LEAST_ROOM}")
    folder.mkdir(parents=True, exist_ok=True)
    example = jnp.asarray(lower[None], DTYPE)
    operators = {
        name: write_network(function, example, folder / f"{name}.onnx")
        for name, function in (("cnn", network), ("twin", twin))
    }
    texts = vnnlib(lower, upper, len(network.bias), asked)
    require_parsed(texts[1])
    for name, text in zip(FILES[2:], texts, strict=True):
        write_file(folder / name, text.encode())
    images = images_in(lower, upper, pair.seed)
    outputs = [np.float64(run_network(folder / name, images)) for name in FILES[:2]]
    apart = np.abs(outputs[0] - outputs[1]).max(0)
    if not (apart <= total).all():
        raise ValueError(f"{pair.name}: logits differ by {apart}, but expected at most {total}")
    content = {
        "schema": SCHEMA,
        "name": pair.name,
        "twin": {"kind": pair.twin, **pair.options, **facts},
        "image": list(network.image),
        "classes": len(network.bias),
        "box": {"radius": pair.radius / PIXELS, "lower": lower.ravel().tolist()},
        "counterexample_if_any": [_said(condition) for condition in asked],
        "expected": pair.expected,
        "why": _why(pair.expected),
        "value": str(value),
        "bound": {"cnn": of_network.tolist(), "twin": of_twin.tolist(), "total": total.tolist()},
        "room": room,
        "largest_difference": apart.tolist(),
        "operators": operators,
    }
    if counterexample is not None:
        exact = logits(network_rows(network), counterexample)
        image = {"image": list(map(float, counterexample)), "logits": list(map(str, exact))}
        write_file(folder / "counterexample.json", _json(image))
    names = [*FILES, *(["counterexample.json"] if counterexample is not None else [])]
    content["sha256"] = {name: digest(folder / name) for name in names}
    write_file(folder / "pair.json", _json(content))
    return content


def images_in(lower: np.ndarray, upper: np.ndarray, seed: int) -> np.ndarray:
    """Corners of the box and images in it, `[batch, channels, rows, columns]`."""
    rng = np.random.default_rng(seed)
    shares = rng.random((IMAGES, *lower.shape))
    shares[: IMAGES // 2] = shares[: IMAGES // 2] < 0.5
    shares[:2] = np.array([0.0, 1.0])[:, None, None, None]
    return np.clip(lower + shares * (upper - lower), lower, upper).astype(np.float32)


def is_written(folder: Path) -> bool:
    """Whether all files of a pair are there, `pair.json` says what is read of it, and digests."""
    try:
        content = read_pair(folder)
        box, bound, digests = content["box"], content["bound"], content["sha256"]
        apart = content["largest_difference"]
        numbers = [box["radius"], *box["lower"], content["room"], *bound["total"], *apart]
        texts = [content["expected"], *content["counterexample_if_any"]]
        return (
            content["schema"] == SCHEMA
            and all(isinstance(number, int | float) for number in numbers)
            and all(isinstance(text, str) for text in texts)
            and len(bound["total"]) == len(apart) == content["classes"] > 0
            and set(FILES) <= set(digests)
            and all(digest(folder / name) == expected for name, expected in digests.items())
        )
    except (OSError, ValueError, KeyError, TypeError):
        return False


def read_pair(folder: Path) -> dict[str, Any]:
    """What `pair.json` holds."""
    return parse_json(read_file(folder / "pair.json"))


def _json(content: Any) -> bytes:
    return (json.dumps(content, indent=1) + "\n").encode()


def _said(condition: Condition) -> str:
    other = condition.larger
    larger = f"Y_{other}" if isinstance(other, int) else str(float(other))
    return f"Y_{condition.smaller} <= {larger}"


def _why(expected: str) -> str:
    if expected == "holds":
        return (
            "linear bounds of the CNN in rational arithmetic: on the box every condition's left "
            "side exceeds its right side by at least `value`"
        )
    return (
        "counterexample.json: an image in the box, at which the CNN in rational arithmetic has a "
        "left side below the right one by -`value`"
    )
