"""`open_source`: a file or the folder of a run, as what the explorer shows.

What only some models need is imported for these alone: for runs Flax, and what restores them.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from convattn.encodings.layer import AttentionLayer
from convattn.extras import require
from convattn.networks.diagnosis.diagnose import read_model
from convattn.networks.diagnosis.layers import (
    SWIN,
    LayerAttention,
    array_layers,
    layer_attention,
    swin_layers,
)
from convattn.networks.diagnosis.measures import require_probabilities
from convattn.networks.diagnosis.state_dicts import read_transformer
from convattn.networks.diagnosis.transformers import attention_layers, token_grid
from convattn.networks.transformation.network_file import FORMAT as CONVERTED
from convattn.networks.transformation.network_file import restore_network
from convattn.networks.weights.files import WeightsFile, has_64_bits, read_weights
from convattn.page.explorer.converted import of_layer, of_network
from convattn.page.explorer.source import Prepared, Source, as_numbers, normaliser

FOR_RUNS = ("flax", "optax", "orbax")
SIDE = 32  # pixels of the images of what takes images of any size
IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


def open_source(
    path: Path,
    *,
    image_size: tuple[int, int] | None = None,
    heads: int | None = None,
    mean: tuple[float, ...] | None = None,
    std: tuple[float, ...] | None = None,
) -> Source:
    """What a file or a folder holds.

    Args:
        path: The folder of a run; a file that `convattn convert` has written; or what `convattn
            diagnose` reads.
        image_size: Of the images that are shown; None takes what the model was trained with, or 32
            pixels where it takes any. For attention probabilities, the tokens.
        heads: Of a state dict without tables; None takes width / 64.
        mean, std: What bytes are normalised with for a file that does not say it; None takes 0.5,
            and for converted networks that take no bytes those of ImageNet.

    Raises:
        ValueError: For what cannot be shown and for options that do not go with it, saying why;
            `OSError` if it cannot be read; `ModuleNotFoundError`, naming the extra, if the model
            needs a package that is missing.
    """
    numbers: dict[str, object] = {"--mean": mean, "--std": std}
    given = {"--heads": heads, **numbers}
    if path.is_dir():
        _refuse({"--image-size": image_size, **given}, "the folder of a run says it itself")
        for package in FOR_RUNS:
            require(package)
        from convattn.page.explorer.trained import of_run

        return of_run(path)
    file = read_weights(path)
    if has_64_bits(file.arrays.values()):
        import jax

        jax.config.update("jax_enable_x64", True)
    size = image_size or (SIDE, SIDE)
    kind = file.metadata.get("format")
    if kind == CONVERTED:
        _refuse({"--heads": heads}, f"{path.name} is a converted network, which says its heads")
        prepare = normaliser(mean or IMAGENET[0], std or IMAGENET[1])
        return of_network(path.name, restore_network(file), image_size, prepare)
    content = read_model(file)[1]
    prepare = normaliser(mean or (0.5,), std or (0.5,))
    if isinstance(content, AttentionLayer):
        if len(content.patch_size) != 2 or not content.heads:
            raise ValueError(f"{content!r}, but expected a layer of images with heads")
        _refuse({"--heads": heads}, f"{path.name} is a layer, which says its heads")
        if content.content is None:
            _refuse(numbers, f"{path.name} is a layer whose attention no image changes")
            return of_layer(path.name, content, size)

        def one(images: Prepared) -> Iterator[LayerAttention]:
            yield layer_attention(content, images, None)

        return Source(path.name, "attention layer", size, prepare, attend=one)
    if not isinstance(content, WeightsFile):
        _refuse(given, f"{path.name} holds attention probabilities, which are shown as they are")
        layers = tuple(array_layers(content, image_size))
        if not layers:
            raise ValueError(f"{path.name} has no layers, but expected at least one")
        for layer in layers:
            try:
                require_probabilities(layer.attention, layer.grid)
            except ValueError as error:
                raise ValueError(
                    f"{path.name}, {layer.name}: {error}; --image-size says the rows and columns "
                    "of tokens"
                ) from error
        return Source(path.name, "attention probabilities", None, as_numbers, recorded=layers)
    if any(map(SWIN.fullmatch, content.arrays)):
        given = {"--image-size": image_size, **given}
        _refuse(given, f"{path.name} is a Swin transformer, of which the tables alone are shown")
        note = "Each layer in one window, by its table alone: a Swin transformer is not run."
        found = tuple(swin_layers(content))
        return Source(path.name, "Swin", None, as_numbers, (note,), recorded=found)
    network = read_transformer(content, heads)
    if network.is_rotary:
        raise ValueError(
            f"{path.name} has the tensors of a network with rotary positions, whose angles stand "
            "in no tensor, but expected positions in the parameters; measure it with convattn "
            "diagnose --rotary, or explore its recorded attention (.npz)"
        )
    rows, columns = token_grid(network, image_size)
    side = network.patch.shape[2]
    notes = [f"Names: {network.naming}."]
    if network.assumed:
        notes.append(f"{network.heads} heads, assumed: 64 features each; --heads says otherwise.")

    def attend(images: Prepared) -> Iterator[LayerAttention]:
        yield from attention_layers(network, np.asarray(images, np.float64))

    shape = (rows * side, columns * side)
    return Source(path.name, "vision transformer", shape, prepare, tuple(notes), attend=attend)


def _refuse(given: Mapping[str, object], why: str) -> None:
    """Refuse options that would change nothing."""
    unused = [name for name, value in given.items() if value is not None]
    if unused:
        verb = "were" if len(unused) > 1 else "was"
        raise ValueError(f"{' and '.join(unused)} {verb} given, but {why}; leave it out")
