"""The suite: a folder of vision transformers whose inner workings are known, with their truth."""

import hashlib
import json
from collections.abc import Callable, Sequence
from decimal import ROUND_CEILING, Context, Decimal
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from convattn.compile import CompiledTransformer, to_vision_transformer
from convattn.files import require_own, write_file
from convattn.known_answers.networks import NETWORKS, KnownNetwork
from convattn.known_answers.page import suite_page
from convattn.known_answers.truth import KnownValue, known_heads, known_values
from convattn.networks.weights.formats import read_safetensors, write_safetensors

INDEX, PAGE, DIGESTS = "suite.json", "index.html", "digests.json"
HEAD = ("kind", "where", "border", "every")  # in the suite every map fills the grid
Arrays = dict[str, np.ndarray]


def write_suite(
    directory: Path | str,
    networks: Sequence[KnownNetwork] = NETWORKS,
    report: Callable[[str], None] = lambda line: None,
) -> dict[str, str]:
    """Compile the networks, and write each with its truth; the same bytes each time.

    `NN-name.safetensors` is a vision transformer by timm's names, with its constructor's arguments
    in the metadata, `NN-name.truth.safetensors` what is known of it, `suite.json` all digests and
    heads, `index.html` a page of pictures. Files that are already there and have the digest that
    this project has recorded are kept, so that an interrupted run goes on.

    Args:
        directory: Made if it is missing; must hold nothing else.
        networks: By default all 24.
        report: Takes a line for each network.

    Returns:
        By file of a network its SHA-256.

    Raises:
        ValueError: If the directory holds something else; if a vision transformer is not within its
            derived bound.
        OSError: If the directory or a file cannot be written.

    Source: docs/known-answers.md of this project.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> sorted(write_suite(folder.name, NETWORKS[:1]))
    ['01-shift.safetensors', '01-shift.truth.safetensors']
    """
    directory = Path(directory)
    require_own(directory, file_names())
    directory.mkdir(parents=True, exist_ok=True)
    recorded = recorded_digests()
    digests: dict[str, str] = {}
    entries = []
    for number, network in enumerate(networks, 1):
        name = f"{number:02}-{network.name}"
        paths = [directory / f"{name}.safetensors", directory / f"{name}.truth.safetensors"]
        own = {path.name: _digest(path) for path in paths if path.is_file()}
        is_there = own == {path.name: recorded.get(path.name) for path in paths}
        if not is_there:
            for path, content in zip(paths, _contents(network), strict=True):
                write_file(path, content)
            own = {path.name: _digest(path) for path in paths}
        digests |= own
        entries.append((network, *_read(paths[1]), own))
        report(f"{name}: {'kept' if is_there else 'written'}; {network.sentence}")
    index = [
        {"name": network.name, "sentence": network.sentence, **truth, "files": own}
        for network, _, truth, own in entries
    ]
    write_file(directory / INDEX, (json.dumps(index, indent=1, sort_keys=True) + "\n").encode())
    write_file(directory / PAGE, suite_page([entry[:3] for entry in entries]))
    return digests


def file_names() -> list[str]:
    """All files of a whole suite, in their order."""
    names = [f"{number:02}-{network.name}" for number, network in enumerate(NETWORKS, 1)]
    models = [f"{name}{end}" for name in names for end in (".safetensors", ".truth.safetensors")]
    return [*models, INDEX, PAGE]


def recorded_digests() -> dict[str, str]:
    """By file of a network, the SHA-256 that it had when this version was made."""
    content = files("convattn.known_answers").joinpath(DIGESTS).read_text()
    return json.loads(content)


def compiled(network: KnownNetwork) -> CompiledTransformer:
    """A network of the suite as timm's vision transformer in float32.

    Raises:
        ValueError: If it is not within its derived bound on the example images.
    """
    transformer = to_vision_transformer(
        network.function, network.example(), patch_size=network.patch_size, channels_first=False
    )
    report = transformer.report
    assert report is not None
    if not report.passed:
        raise ValueError(f"{network.name} failed its comparison: {report}")
    return transformer


def truth_of(network: KnownNetwork, transformer: CompiledTransformer) -> tuple[Arrays, Any]:
    """What is known: arrays, and what is no array.

    Images are `[images, channels, rows, columns]`, as timm takes them.
    """
    images = network.example()
    values = known_values(transformer.plan, images)
    arrays: Arrays = {"images": np.ascontiguousarray(images.transpose(0, 3, 1, 2))}
    for number, value in enumerate(values, 1):
        is_last = number == len(values)
        arrays |= _arrays("logits" if is_last else f"value{number}", value, is_last)
    report = transformer.report
    assert report is not None
    facts = {
        "arguments": transformer.arguments,
        "values": {f"value{n}": value.blocks for n, value in enumerate(values[:-1], 1)},
        "heads": [
            [{key: getattr(head, key) for key in HEAD} for head in block]
            for block in known_heads(transformer.plan)
        ],
        "bound": rounded_up(float(report.bound.total.max())),
    }
    return arrays, facts


def rounded_up(number: float) -> float:
    """To two digits, so that the last bits of a sum do not matter.

    >>> rounded_up(0.00123456)
    0.0013
    """
    return float((Decimal(number)).normalize(Context(prec=2, rounding=ROUND_CEILING)))


def _arrays(name: str, value: KnownValue, is_last: bool) -> Arrays:
    if is_last:
        return {
            name: value.numbers[:, 0],
            f"{name}.field": value.field[0],
            f"{name}.jacobian": value.jacobian[:, 0],
        }
    return {
        name: value.numbers,
        f"{name}.tokens": value.tokens,
        f"{name}.channels": value.channels,
        f"{name}.field": value.field,
        f"{name}.jacobian": value.jacobian[0],
    }


def _contents(network: KnownNetwork) -> tuple[bytes, bytes]:
    """Of both files."""
    transformer = compiled(network)
    arrays, facts = truth_of(network, transformer)
    metadata = {"format": "pt", "truth": json.dumps(facts, sort_keys=True)}
    return transformer.contents(), write_safetensors(arrays, metadata)


def _read(path: Path) -> tuple[Arrays, Any]:
    arrays, metadata = read_safetensors(path.read_bytes(), path.name)
    return arrays, json.loads(metadata["truth"])


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
