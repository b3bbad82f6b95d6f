"""`open_source`: a file or the folder of a run, as what the explorer shows.

What only some models need is imported for these alone: for runs Flax, and what restores them.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from convattn.diagnosis.layers import LayerAttention
from convattn.diagnosis.measures import require_probabilities
from convattn.diagnosis.reading import read_attention
from convattn.extras import require
from convattn.networks.transformation.network_file import FORMAT as CONVERTED
from convattn.networks.transformation.network_file import restore_network
from convattn.networks.weights.files import has_64_bits, read_weights
from convattn.operators.integers import per_axis
from convattn_lab.explorer.converted import of_layer, of_network
from convattn_lab.explorer.source import Source, as_numbers, normaliser

FOR_RUNS = ("flax", "optax", "orbax")
SIDE = 32  # pixels of the images of what takes images of any size
IMAGENET = ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


def open_source(
    path: Path,
    *,
    image_size: int | Sequence[int] | None = None,
    mean: tuple[float, ...] | None = None,
    std: tuple[float, ...] | None = None,
    **of_state_dict: Any,
) -> Source:
    """What a file or a folder holds.

    Args:
        path: The folder of a run; a file that `convattn convert kernel` or `network` has written;
            or what `convattn diagnose` reads.
        image_size: Of the images that are shown; None takes what the model was trained with, or 32
            pixels where it takes any. For attention probabilities, the tokens.
        mean, std: What bytes are normalised with for a file that does not say it; None takes 0.5,
            and for converted networks that take no bytes those of ImageNet.
        of_state_dict: `heads`, `rotary`, `norm_epsilon`, `activation` of `diagnose`.

    Raises:
        ValueError: For what cannot be shown and for options that do not go with it, saying why;
            `OSError` if it cannot be read; `ModuleNotFoundError`, naming the extra, if the model
            needs a package that is missing.
    """
    numbers: dict[str, object] = {"--mean": mean, "--std": std}
    options = {f"--{name.replace('_', '-')}": value for name, value in of_state_dict.items()}
    if path.is_dir():
        options = {"--image-size": image_size, **options, **numbers}
        _require_unset(options, "the folder of a run says it itself")
        for package in FOR_RUNS:
            require(package)
        from convattn_lab.explorer.trained import of_run

        return of_run(path)
    file = read_weights(path)
    if has_64_bits(file.arrays.values()):
        import jax

        jax.config.update("jax_enable_x64", True)
    sides = per_axis(SIDE if image_size is None else image_size, 2, "image_size")
    size = sides[0], sides[1]
    kind = file.metadata.get("format")
    if kind == CONVERTED:
        _require_unset(
            options, f"{path.name} is a converted network, which says its attention itself"
        )
        requested_size = None if image_size is None else size
        prepare = normaliser(mean or IMAGENET[0], std or IMAGENET[1])
        return of_network(path.name, restore_network(file), requested_size, prepare)
    model = read_attention(file, image_size=image_size, **of_state_dict)
    layer = model.layer
    if layer is not None and (len(layer.patch_size) != 2 or not layer.heads):
        raise ValueError(f"{layer!r}, but expected a layer of images with heads")
    if layer is not None and layer.content is None:
        _require_unset(numbers, f"{path.name} is a layer whose attention no image changes")
        return of_layer(path.name, layer, size)
    if not model.takes_images:
        _require_unset(numbers, f"{path.name} holds attention, which is shown as it is")
        layers = tuple(model.attend(None))
        _require_probabilities(path.name, layers)
        return Source(path.name, model.kind, None, as_numbers, model.notes, recorded=layers)
    prepare = normaliser(mean or (0.5,), std or (0.5,))
    shape = model.image_size() or size
    return Source(path.name, model.kind, shape, prepare, model.notes, attend=model.attend)


def _require_probabilities(name: str, layers: tuple[LayerAttention, ...]) -> None:
    """Refuse no layers, and layers whose attention does not sum to one."""
    if not layers:
        raise ValueError(f"{name} has no layers, but expected at least one")
    for layer in layers:
        try:
            require_probabilities(layer.attention, layer.grid)
        except ValueError as error:
            raise ValueError(
                f"{name}, {layer.name}: {error}; --image-size says the rows and columns of tokens"
            ) from error


def _require_unset(options: Mapping[str, object], why: str) -> None:
    """Refuse options that would change nothing."""
    unused = [name for name, value in options.items() if value is not None]
    if unused:
        verb = "were" if len(unused) > 1 else "was"
        raise ValueError(f"{' and '.join(unused)} {verb} given, but {why}; leave it out")
