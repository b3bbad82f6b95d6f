"""``convattn diagnose``: what the attention heads of a trained model do."""

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import Positional, arg

from convattn.cli.output import console, print_lines, require_folder, require_outputs, write_json
from convattn.cli.running import SUCCESS, Json, Sizes, UsageError, option, sizes_of
from convattn.files import write_inside

ARCHIVES = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz")
LEGEND = (
    "distance, spread: of the key from the query, in tokens. entropy: nats. by position: the "
    "fraction of the attention's variance that positions alone explain. one shift: the mean "
    "attention to the key at that shift. elsewhere: attention to a class token or a ring. to conv: "
    "the head's attention against its nearest convolution."
)
LAYERS = (
    "distance: of the whole layer, with its value maps, from the nearest convolution, relative. "
    "rank, limit, exact: of that convolution's kernel, and the heads that it takes as scores tend "
    "to infinity and at finite scores (S.kernel; for any kernel {} and {}, S.finite). as near: no "
    "fewer heads without content are as near to that convolution as the layer is."
)


@dataclass(frozen=True)
class Diagnose:
    """Measure what each attention head of a trained model does, and draw it.

    MODEL is a ViT, DeiT, BEiT, DINOv2, CLIP or SigLIP with timm's or Hugging Face's names, or a ViT
    with torchvision's or Google's; a Swin, which is not run: each layer is seen in one window, by
    its table of relative positions; a layer that convattn convert has written; or attention
    probabilities [images, heads, queries, keys], by which any other network can be measured.

    Attributes:
        model: .safetensors, .npz or .npy; no pickles.
        images: A file [images, height, width, channels], floats as the model takes them or bytes;
            or a folder or archive of images as for experiments/cifar.py, whose test images are
            taken. Default: one image of zeros, so that positions alone decide.
        count: At most so many images.
        mean: What bytes are normalised with, (x/255 - mean)/std, one number or one a channel; used
            with state dicts alone.
        std: The same. DeiT takes 0.485 0.456 0.406 and 0.229 0.224 0.225, ViT and BEiT mostly 0.5.
        heads: Of each layer, if no table or kernel says it; default: width / 64, as in ViT.
        rotary: How queries and keys are turned, which stands in no tensor: timm (as its
            vit_*_rope_224: base 100, columns first), dinov3, none; then changes such as
            base=10000, layout=halves, columns_first=false, spacing=1, origin=0.
        norm_epsilon: Of LayerNorm, where the checkpoint's kind leaves it open: 1e-6 for ViT-MSN
            with Hugging Face's names; 1e-5 if --rotary is dinov3.
        activation: Of the MLPs, where the checkpoint's kind leaves it open: gelu, gelu_tanh or
            quick_gelu, such as gelu for OpenCLIP with Hugging Face's names, quick_gelu for OpenAI's
            CLIP with timm's.
        kernel_size: Of the convolutions, in tokens.
        layer: Only these layers, counted from 1.
        image_size: Without images, their pixels; for attention probabilities the tokens.
        query: Row and column of the token whose attention is drawn; default: the middle.
        output_dir: Draw each layer into this folder, as PNG and SVG; needs matplotlib.
    """

    model: Annotated[Positional[Path], option("MODEL")]
    images: Annotated[Path | None, option("PATH")] = None
    count: int = 16
    mean: Annotated[tuple[float, ...], arg(metavar="M [M M]")] = (0.5,)
    std: Annotated[tuple[float, ...], arg(metavar="S [S S]")] = (0.5,)
    heads: Annotated[int | None, option("N")] = None
    rotary: Annotated[tuple[str, ...] | None, option("KIND [KEY=VALUE …]")] = None
    norm_epsilon: Annotated[float | None, option("E")] = None
    activation: Annotated[str | None, option("NAME")] = None
    kernel_size: Annotated[Sizes, arg(metavar="K [K]")] = (3,)
    layer: Annotated[Sizes | None, option("N [N …]")] = None
    image_size: Annotated[Sizes | None, option("H [W]")] = None
    query: Annotated[tuple[int, int] | None, option("R C")] = None
    output_dir: Annotated[Path | None, option("DIR")] = None
    json: Json = None

    def __call__(self) -> int:
        """Measure, print the tables, and write the pictures and the numbers.

        Returns:
            0.

        Raises:
            UsageError: If a file cannot be read or written, the model or the images are refused, or
                an option does not go with the model. Nothing is written then.
        """
        require_outputs({"--json": self.json}, {"MODEL": self.model, "--images": self.images})
        require_folder(self.output_dir)
        if self.query is not None and self.output_dir is None:
            raise UsageError("--query says what is drawn; give --output-dir too")
        if self.count < 1:
            raise UsageError(f"--count got {self.count}, but expected at least 1")
        without = {"count": self.count, "mean": self.mean, "std": self.std}
        for name in (name for name in without if self.images is None):
            if without[name] != getattr(Diagnose, name):
                raise UsageError(f"--{name} goes with --images only")
        kernel = sizes_of(self.kernel_size, "--kernel-size")
        size = None if self.image_size is None else sizes_of(self.image_size, "--image-size")
        from convattn.networks.diagnosis.diagnose import diagnose, read_model
        from convattn.networks.diagnosis.picture import require_matplotlib
        from convattn.networks.weights.files import WeightsFile, has_64_bits, read_weights

        writes: set[str] = set()
        try:
            if self.output_dir is not None:
                require_matplotlib()
            model = read_weights(self.model)
            if has_64_bits(model.arrays.values()):
                import jax

                jax.config.update("jax_enable_x64", True)
            normalise = isinstance(read_model(model)[1], WeightsFile)
            images, note = (None, []) if self.images is None else self._images(normalise)
            epsilon, is_dinov3 = self.norm_epsilon, (self.rotary or ("",))[0] == "dinov3"
            options: dict[str, Any] = {
                "heads": self.heads,
                "kernel_size": kernel,
                "image_size": size,
                "rotary": None if self.rotary is None else read_rotary(self.rotary),
                "norm_epsilon": 1e-5 if epsilon is None and is_dinov3 else epsilon,
                "activation": self.activation,
            }
            found = diagnose(model, images, layers=self.layer, **options)
            found = replace(found, notes=(*found.notes, *note))
            pictures = {} if self.output_dir is None else self._pictures(found)
            if self.output_dir is not None:
                self.output_dir.mkdir(parents=True, exist_ok=True)
                drawn = {name: self.output_dir / name for name in pictures}
                require_outputs(
                    {f"--output-dir, {name}": path for name, path in drawn.items()},
                    {"MODEL": self.model, "--images": self.images, "--json": self.json},
                )
                for path in (path for path in drawn.values() if path.is_symlink()):
                    raise UsageError(f"--output-dir would write {path}, which is a link; remove it")
                writes = {str(path) for path in (self.output_dir, *drawn.values())}
                for name, content in pictures.items():
                    write_inside(drawn[name], content)
            document = found.as_dict()
        except OSError as error:
            where = "write" if error.filename in writes else "read"
            raise UsageError(f"cannot {where} {error.filename}: {error.strerror}") from error
        except ValueError as error:
            raise UsageError(str(error)) from error
        console().print(found.head_table())
        console().print(LEGEND, markup=False)
        print_lines([""])
        console().print(found.layer_table())
        taps = found.layers[0].convolution.kernel_size
        enough = taps[0] * taps[1]
        console().print(LAYERS.format(enough, enough + 1), markup=False)
        print_lines(["", *found.notes])
        if self.output_dir is not None:
            print_lines([str(self.output_dir / name) for name in pictures])
        write_json(self.json, document)
        return SUCCESS

    def _images(self, normalise: bool) -> tuple[Any, list[str]]:
        """The first images of a file, or test images of a folder, and how they were normalised."""
        import numpy as np

        path = self.images or Path()
        if is_image_set(path):
            found = read_test_images(path).images[: self.count]
        else:
            from convattn.networks.weights.files import read_weights

            file = read_weights(path)
            if len(file.arrays) != 1:
                raise UsageError(f"--images got {path}, but expected one array: {file.listing()}")
            found = np.atleast_1d(file[next(iter(file.arrays))])[: self.count]
        if found.dtype.kind == "f":
            return found, []
        if found.dtype != np.uint8:
            raise UsageError(
                f"--images got {path} with {found.dtype}, but expected floats, or bytes (uint8)"
            )
        if not normalise:
            return found.astype(np.float32), []
        channels = found.shape[-1]
        if not all(len(each) in (1, channels) for each in (self.mean, self.std)):
            raise UsageError(
                f"--mean and --std got {len(self.mean)} and {len(self.std)} numbers, but expected "
                f"one or {channels}: the images have shape {found.shape}"
            )
        if min(self.std) <= 0 or not all(map(math.isfinite, (*self.mean, *self.std))):
            raise UsageError(
                f"--mean and --std got {self.mean} and {self.std}, but expected numbers > 0 "
                "for --std, and finite ones for both"
            )
        mean, std = (" ".join(map(str, numbers)) for numbers in (self.mean, self.std))
        note = f"Bytes x are normalised: (x/255 - mean)/std with mean {mean} and std {std}."
        return (found / 255 - np.array(self.mean)) / np.array(self.std), [note]

    def _pictures(self, found: Any) -> dict[str, bytes]:
        """All pictures, by the name of their file, drawn before the first is written."""
        from convattn.networks.diagnosis.head_maps import plot_heads
        from convattn.networks.diagnosis.picture import picture_files

        pictures: dict[str, bytes] = {}
        for layer in found.layers:
            rows, columns = layer.grid
            query = (rows // 2, columns // 2) if self.query is None else self.query
            title = (
                f"{self.model.name}: {layer.name}, attention of the token at row {query[0]}, "
                f"column {query[1]} of {rows} × {columns}"
            )
            figure = plot_heads(layer.mean, query, title=title)
            pictures |= picture_files(figure, f"layer{layer.number:02}")
        return pictures


class RotaryOption:
    """What --rotary says: from the width of a head and the grid to the turns."""

    def __init__(self, words: tuple[str, ...]) -> None:
        import json

        self.words, self.values = words, {}
        for word in words[1:]:
            key, _, text = word.partition("=")
            try:
                self.values[key] = json.loads(text)
            except ValueError:
                self.values[key] = text
        if words[0] not in ("timm", "dinov3") or not self.values.keys() <= KEYS:
            raise UsageError(
                f"--rotary got {' '.join(words)}, but expected timm, dinov3 or none, and then "
                f"KEY=VALUE with {', '.join(sorted(KEYS))}"
            )

    def __repr__(self) -> str:
        return " ".join(self.words)

    def __call__(self, width: int, grid: tuple[int, int]) -> Any:
        """The turns of heads of that width on that grid.

        Raises:
            ValueError: As `convattn.initialization.Rotary.axial`.
        """
        from convattn.initialization import Rotary

        values: dict[str, Any] = {"columns_first": True}
        if self.words[0] == "dinov3":
            values = {
                "layout": "halves",
                "spacing": tuple(4 * math.pi / side for side in grid),
                "origin": tuple((1 - side) / 2 for side in grid),
            }
        values |= self.values
        for name in ("spacing", "origin"):
            if isinstance(values.get(name), int | float):
                values[name] = (values[name], values[name])
        return Rotary.axial(width, **values)


KEYS = {"base", "layout", "columns_first", "spacing", "origin"}


def read_rotary(words: tuple[str, ...]) -> Any:
    """What `diagnose` takes for --rotary.

    Raises:
        UsageError: For another kind, or another key.
    """
    return "none" if words == ("none",) else RotaryOption(words)


def is_image_set(path: Path) -> bool:
    """Whether --images names a folder or an archive, rather than one file of arrays."""
    return path.is_dir() or path.name.endswith(ARCHIVES)


def read_test_images(path: Path) -> Any:
    """The labelled test images of a folder or an archive that --images names.

    Raises:
        UsageError: If it cannot be read. ValueError if it holds no images.
    """
    if not path.exists():
        raise UsageError(
            f"--images got {path}, but nothing is there; expected a folder or an archive of images"
        )
    from convattn.lab.data.datasets import read_dataset

    try:
        return read_dataset(path).test
    except OSError as error:
        told = error.strerror or str(error)
        raise UsageError(f"--images got {path}, which cannot be read: {told}") from error
