"""``convattn diagnose``: what the attention heads of a trained model do."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

from tyro.conf import Positional, arg

from convattn.cli.output import console, print_lines, require_folder, require_outputs, write_json
from convattn.cli.running import SUCCESS, Json, Sizes, UsageError, cannot, option, sizes_of
from convattn.files import write_file, write_inside

ARCHIVES = (".tar", ".tar.gz", ".tgz", ".tar.bz2", ".tbz2", ".tar.xz", ".txz")


@dataclass(frozen=True)
class Diagnose:
    """Measure what each attention head of a trained model does, and draw it.

    MODEL is a ViT, DeiT, BEiT, DINOv2, CLIP or SigLIP with timm's or Hugging Face's names, or a ViT
    with torchvision's or Google's; a Swin, which is not run: each layer is seen in one window, by
    its table of relative positions; a layer that convattn convert kernel has written; or attention
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
        heads: Of each layer, if no table, kernel or metadata says it; default: width / 64.
        rotary: How queries and keys are turned, which stands in no tensor: timm (as its
            vit_*_rope_224: base 100, columns first), dinov3, none; then changes such as
            base=10000, layout=halves, columns_first=false, spacing=1, origin=0.
        norm_epsilon: Of LayerNorm, where the checkpoint's kind leaves it open: 1e-6 for ViT-MSN
            with Hugging Face's names.
        activation: Of the MLPs, where the checkpoint's kind leaves it open: gelu, gelu_tanh or
            quick_gelu. CLIP needs it: quick_gelu for OpenAI's, gelu for most of OpenCLIP's.
        kernel_size: Of the convolutions, in tokens.
        layer: Only these layers, counted from 1.
        image_size: Without images, their pixels; for attention probabilities the tokens.
        query: Row and column of the token whose attention is drawn; default: the middle.
        output_dir: Draw each layer into this folder, as PNG and SVG; needs matplotlib.
        html: Tables and pictures as one page to pass on, which needs no other file; needs
            matplotlib.
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
    html: Annotated[Path | None, option("FILE")] = None
    json: Json = None

    def __call__(self) -> int:
        """Measure, print the tables, and write the pictures and the numbers.

        Returns:
            0.

        Raises:
            UsageError: If a file cannot be read or written, the model or the images are refused, or
                an option does not go with the model. Nothing is written then.
        """
        self._require_options()
        kernel = sizes_of(self.kernel_size, "--kernel-size")
        from convattn.cli.diagnosis_tables import printed_table
        from convattn.diagnosis.models import measure_model
        from convattn.diagnosis.tables import head_table, layer_table

        try:
            model = self._model()
            images, note = (None, []) if self.images is None else self._images(model.layer is None)
            report = measure_model(model, images, layers=self.layer, kernel_size=kernel)
            report = replace(report, notes=(*report.notes, *note))
            pictures, page = self._draw(report)
        except OSError as error:
            raise UsageError(cannot("read", error)) from error
        except ValueError as error:
            raise UsageError(str(error)) from error
        self._write(pictures, page)
        for table in (head_table(report), layer_table(report)):
            console().print(printed_table(table))
            console().print(table.legend, markup=False)
            print_lines([""])
        print_lines([*report.notes, *map(str, pictures)])
        if self.html is not None:
            print_lines([str(self.html)])
        write_json(self.json, report.as_dict())
        return SUCCESS

    def _require_options(self) -> None:
        """Refuse options that do not go together, and files that could not be written.

        Raises:
            UsageError: As described above.
        """
        inputs = {"MODEL": self.model, "--images": self.images}
        require_outputs({"--html": self.html, "--json": self.json}, inputs)
        require_folder(self.output_dir)
        if self.query is not None and self.output_dir is None and self.html is None:
            raise UsageError("--query says what is drawn; give --output-dir or --html too")
        if self.count < 1:
            raise UsageError(f"--count got {self.count}, but expected at least 1")
        for name in ("count", "mean", "std") if self.images is None else ():
            if getattr(self, name) != getattr(Diagnose, name):
                raise UsageError(f"--{name} goes with --images only")
        if self.images is not None and self.image_size is not None:
            raise UsageError("--images and --image-size: the images say their size")

    def _model(self) -> Any:
        """The model that MODEL names, read with the options."""
        from convattn.diagnosis.picture import require_matplotlib
        from convattn.diagnosis.reading import read_attention
        from convattn.networks.weights.files import has_64_bits, read_weights

        if self.output_dir is not None or self.html is not None:
            require_matplotlib()
        size = None if self.image_size is None else sizes_of(self.image_size, "--image-size")
        file = read_weights(self.model)
        if has_64_bits(file.arrays.values()):
            import jax

            jax.config.update("jax_enable_x64", True)
        return read_attention(
            file,
            image_size=size,
            heads=self.heads,
            rotary=None if self.rotary is None else " ".join(self.rotary),
            norm_epsilon=self.norm_epsilon,
            activation=self.activation,
        )

    def _images(self, normalise: bool) -> tuple[Any, list[str]]:
        """The first images of a file, or test images of a folder, and how they were normalised."""
        import numpy as np

        path = self.images or Path()
        if _is_image_set(path):
            images = read_test_images(path).images[: self.count]
        else:
            from convattn.networks.weights.files import read_weights

            file = read_weights(path)
            if len(file.arrays) != 1:
                raise UsageError(f"--images got {path}, but expected one array: {file.listing()}")
            images = np.atleast_1d(file[next(iter(file.arrays))])[: self.count]
        if images.dtype.kind == "f":
            return images, []
        if images.dtype != np.uint8:
            raise UsageError(
                f"--images got {path} with {images.dtype}, but expected floats, or bytes (uint8)"
            )
        if not normalise:
            return images.astype(np.float32), []
        channels = images.shape[-1]
        if not all(len(values) in (1, channels) for values in (self.mean, self.std)):
            raise UsageError(
                f"--mean and --std got {len(self.mean)} and {len(self.std)} numbers, but expected "
                f"one or {channels}: the images have shape {images.shape}"
            )
        if min(self.std) <= 0 or not all(map(math.isfinite, (*self.mean, *self.std))):
            raise UsageError(
                f"--mean and --std got {self.mean} and {self.std}, but expected numbers > 0 "
                "for --std, and finite ones for both"
            )
        mean, std = (" ".join(map(str, numbers)) for numbers in (self.mean, self.std))
        note = f"Bytes x are normalised: (x/255 - mean)/std with mean {mean} and std {std}."
        return (images / 255 - np.array(self.mean)) / np.array(self.std), [note]

    def _draw(self, report: Any) -> tuple[dict[Path, bytes], bytes]:
        """All pictures by their path, and the page, drawn before the first is written."""
        from convattn.diagnosis.head_maps import plot_heads
        from convattn.diagnosis.page import diagnosis_page
        from convattn.diagnosis.picture import FORMATS, picture_files

        if self.output_dir is None and self.html is None:
            return {}, b""
        formats = ("svg",) if self.output_dir is None else FORMATS
        pictures: dict[str, bytes] = {}
        for layer in report.layers:
            rows, columns = layer.grid
            query = (rows // 2, columns // 2) if self.query is None else self.query
            title = (
                f"{self.model.name}: {layer.name}, attention of the token at row {query[0]}, "
                f"column {query[1]} of {rows} × {columns}"
            )
            figure = plot_heads(layer.mean, query, title=title)
            pictures |= picture_files(figure, f"layer{layer.number:02}", formats)
        page = b"" if self.html is None else diagnosis_page(self.model.name, report, pictures)
        folder = self.output_dir
        return {} if folder is None else {folder / name: pictures[name] for name in pictures}, page

    def _write(self, pictures: Mapping[Path, bytes], page: bytes) -> None:
        """Write the pictures into their folder, and the page.

        Raises:
            UsageError: If a picture would overwrite another file, or a file cannot be written.
        """
        written = {f"--output-dir, {path.name}": path for path in pictures}
        others = {"--images": self.images, "--html": self.html, "--json": self.json}
        try:
            if self.output_dir is not None:
                self.output_dir.mkdir(parents=True, exist_ok=True)
            require_outputs(written, {"MODEL": self.model, **others})
            for path in (path for path in pictures if path.is_symlink()):
                raise UsageError(f"--output-dir would write {path}, which is a link; remove it")
            for path, content in pictures.items():
                write_inside(path, content)
            if self.html is not None:
                write_file(self.html, page)
        except OSError as error:
            raise UsageError(cannot("write", error)) from error


def _is_image_set(path: Path) -> bool:
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
    from convattn.data.datasets import read_dataset

    try:
        return read_dataset(path).test
    except OSError as error:
        reason = error.strerror or str(error)
        raise UsageError(f"--images got {path}, which cannot be read: {reason}") from error
