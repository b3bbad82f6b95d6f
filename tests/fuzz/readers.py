"""The readers of outside data, for `scripts/fuzz.py`: their seeds, and what they may refuse with.

A reader whose input is a folder is given a ZIP archive of it. Where two readers read the same
format, they are compared, and `Disagreement` is raised if they differ.
"""

import contextlib
import functools
import io
import json
import re
import sys
import tarfile
import warnings
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]


class Disagreement(Exception):
    """Two readers of one format read different things, or only one of them refuses."""


@dataclass(frozen=True)
class Reader:
    """A reader of outside data.

    Attributes:
        name: What it is called on the command line.
        call: Reads one input; it may write below the folder that it is given.
        refusals: What it may raise.
        make_seeds: Inputs that it takes.
        folder: Whether an input is a ZIP archive that stands for a folder.
        allowed: Audit events that are its own, such as the connection to its own server.
    """

    name: str
    call: Callable[[bytes, Path], None]
    refusals: tuple[type[Exception], ...]
    make_seeds: Callable[[], list[bytes]]
    folder: bool = False
    allowed: tuple[str, ...] = ()

    @functools.cached_property
    def seeds(self) -> list[bytes]:
        """Inputs that it takes, made once."""
        return self.make_seeds()


def same(one: Any, other: Any, what: str) -> None:
    """Raise a `Disagreement` if two things that were read differ."""
    if one != other:
        raise Disagreement(f"{what}: {str(one)[:200]} and {str(other)[:200]}")


def chosen(content: bytes, one_in: int) -> bool:
    """Whether an input is one of the few for which a slow comparison is made."""
    return zlib.crc32(content) % one_in == 0


def packed(files: Mapping[str, bytes]) -> bytes:
    """A folder as an input."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return held.getvalue()


def folder_bytes(path: Path) -> bytes:
    """The same of a folder on the disk."""
    files = {
        p.relative_to(path).as_posix(): p.read_bytes()
        for p in sorted(path.rglob("*"))
        if p.is_file()
    }
    return packed(files)


def unpacked(content: bytes, folder: Path) -> Path:
    """The folder that an input stands for; names that lead out of it are left out."""
    folder = folder / "given"
    folder.mkdir()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for info in archive.infolist():
            parts = [part for part in info.filename.split("/") if part not in ("", ".", "..")]
            path = folder.joinpath(*parts)
            with contextlib.suppress(OSError, ValueError):  # a name that no file can have
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(archive.read(info))
    return folder


def command(folder: Path, content: bytes, *words: str) -> str:
    """What a command says of a file that it refuses; "" if it takes it.

    Raises:
        Disagreement: If it ends in any other way than commands do.
    """
    from convattn.cli.__main__ import main

    path = folder / "given"
    path.write_bytes(content)
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main([words[0], str(path), *words[1:]])
    told = err.getvalue()
    if code not in (0, 1, 2) or (code == 2) != bool(told) or told.count("\n") > 1:
        raise Disagreement(f"{' '.join(words)} exits with {code} and says {told[:500]!r}")
    return told


# Certificates


def read_certificate(content: bytes, folder: Path) -> None:
    """The checker alone, through its own command, and through `convattn check`."""
    from convattn_check import check
    from convattn_check.command import main

    verdict = check(content)
    if verdict.code == "internal":
        raise Disagreement(f"internal: {verdict.reason}")
    if not verdict.accepted and not verdict.reason:
        raise Disagreement(f"no reason for {verdict.code}")
    if not chosen(content, 50):
        return
    path = folder / "given"
    path.write_bytes(content)
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        code = main(["--json", str(path)])
    found = json.loads(said.getvalue())[0]
    expected = (int(not verdict.accepted), verdict.accepted, verdict.code, verdict.reason)
    same((code, found["accepted"], found["code"], found["reason"]), expected, "the command")
    if chosen(content, 500):
        same(command(folder, content, "check"), "", "convattn check")


def certificate_seeds() -> list[bytes]:
    """The quick ones of those that are committed, and all that are to be accepted or refused."""
    from convattn_check import check

    places = ("certificates", "tests/correct", "tests/incorrect")
    paths = [path for place in places for path in sorted((ROOT / place).glob("*-*.json"))]
    held = [path.read_bytes() for path in paths if path.stat().st_size < 6000]
    return [each for each in held[::3] if check(each).seconds < 0.05]


# Arrays


def weights(content: bytes) -> Any:
    """A file of arrays, every one of which is asked for."""
    from convattn.networks.weights.files import parse_weights
    from convattn.networks.weights.formats import WeightsRefused

    file = parse_weights(content, "given")
    file.listing("conv")
    for name in file.arrays:
        with contextlib.suppress(WeightsRefused):
            file[name]
    return file


def read_arrays(content: bytes, folder: Path) -> None:
    """A file of arrays; NumPy and the library of safetensors find the same; so does a command."""
    from convattn.networks.weights.convolution_layout import find_convolution
    from convattn.networks.weights.formats import WeightsRefused

    refused = None
    try:
        file = weights(content)
    except WeightsRefused as problem:
        refused = problem
    if refused is None:
        _compared(content, file)
    if chosen(content, 100):
        told = command(folder, content, "convert", "--layer", "no such layer")
        reason = "has no layer" if refused is None else str(refused).partition("given")[2][:20]
        if reason not in told and "is an attention layer" not in told and "\\" not in told:
            raise Disagreement(f"the library says {refused}, the command {told}")
    if refused is not None:
        raise refused
    find_convolution(file, None, "auto", "kernel")


def _compared(content: bytes, file: Any) -> None:
    from safetensors.numpy import load

    ours, theirs = file.arrays, {}
    if any(not array.dtype.itemsize for array in ours.values()):
        return  # NumPy finds no end of these
    try:
        if content[:1] == b"\x93":
            theirs = {"": np.load(io.BytesIO(content), allow_pickle=False)}
        elif content[:2] == b"PK":
            with np.load(io.BytesIO(content), allow_pickle=False) as held:
                theirs = {name: held[name] for name in held.files}
        else:
            theirs = load(content)
    except (KeyError, TypeError):  # formats of safetensors that NumPy has not
        return
    except ValueError as problem:
        raise Disagreement(f"NumPy refuses what was read: {problem}") from problem
    if file.metadata:
        theirs = {name: array for name, array in theirs.items() if name != "metadata"}
    same(sorted(ours), sorted(theirs), "names")
    for name, array in theirs.items():
        if array.dtype.kind != "V" and ours[name].dtype.name != "bfloat16":
            same((ours[name].dtype, ours[name].shape), (array.dtype, array.shape), name)
            same(ours[name].tobytes(), array.tobytes(), name)


def _arrays() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {
        "conv.weight": rng.normal(size=(2, 1, 3, 3)).astype(np.float32),
        "conv.bias": rng.normal(size=2).astype(np.float32),
        "steps": np.arange(3),
        "norm.scale": np.ones((2, 2), np.float16),
    }


def npy_seeds() -> list[bytes]:
    """Arrays of several types, orders and ranks."""
    arrays = (*_arrays().values(), np.array(1.5), np.zeros((0, 3)), np.array(["a", "bc"]))
    fortran = np.asfortranarray(np.arange(6, dtype=">f8").reshape(2, 3))
    return [_saved(np.save, array) for array in (*arrays, fortran, np.array([True, False]))]


def _saved(save: Any, *arrays: Any, **named: Any) -> bytes:
    held = io.BytesIO()
    save(held, *arrays, **named)
    return held.getvalue()


def npz_seeds() -> list[bytes]:
    """Archives with and without compression, and one of this library with bfloat16."""
    import jax.numpy as jnp

    from convattn.networks.weights.formats import write_npz

    arrays = _arrays()
    wide = {**arrays, "narrow": np.asarray(jnp.ones(3, jnp.bfloat16))}
    return [
        _saved(np.savez, **arrays),
        _saved(np.savez_compressed, **arrays),
        _saved(np.savez, conv=arrays["conv.weight"]),
        write_npz(wide, {"format": "pt"}),
    ]


def safetensors_seeds() -> list[bytes]:
    """Files with and without metadata."""
    from convattn.networks.weights.formats import write_safetensors

    arrays = _arrays()
    one = {"kernel": arrays["conv.weight"]}
    return [write_safetensors(arrays, {}), write_safetensors(one, {"format": "flax"})]


# Layers and networks


def read_layer(content: bytes, folder: Path) -> None:
    """A stored layer; what was taken is written and read again."""
    from convattn.networks.weights.stored_layer import (
        encode,
        layer_arrays,
        layer_metadata,
        restore_layer,
    )

    layer = restore_layer(weights(content))
    again = encode(layer_arrays(layer), layer_metadata(layer), ".safetensors")
    same(layer_metadata(restore_layer(weights(again))), layer_metadata(layer), "written again")


def layer_seeds() -> list[bytes]:
    """Layers of every encoding, with padding, content and two of them."""
    import jax.numpy as jnp

    import convattn as ca
    from convattn.networks.weights.stored_layer import encode, layer_arrays, layer_metadata

    kernel = jnp.asarray(np.random.default_rng(0).normal(size=(3, 3, 1, 1)), jnp.float32)
    layers: list[Any] = [
        ca.conv_to_attention(kernel),
        ca.conv_to_attention(kernel, patch_size=2, stride=2),
        ca.conv_to_attention(kernel, padding="EDGE"),
        ca.conv_to_attention(kernel[0], exact=False),
        ca.two_layers(kernel),
        *(
            ca.conv_to_attention(kernel, encoding=encoding, exact=False)
            for encoding in ("quadratic", "enumerated", "polygon", "rotary")
        ),
    ]
    held = [(layer_arrays(layer), layer_metadata(layer)) for layer in layers]
    return [encode(*each, suffix) for each, suffix in zip(held, [".safetensors"] * 9, strict=True)]


def read_network(content: bytes, folder: Path) -> None:
    """A network of steps."""
    from convattn.networks.network_file import restore_network

    restore_network(weights(content))


def network_seeds() -> list[bytes]:
    """A small converted network, and steps without layers."""
    import jax.numpy as jnp
    from networks.small import small_network

    from convattn.networks.network_file import network_bytes
    from convattn.networks.steps import Linear, Mean, Relu

    plain = (Relu(), Mean(), Linear(jnp.ones((1, 2)), jnp.zeros(2)))
    return [network_bytes(plain), network_bytes(small_network().attention)]


def read_model(content: bytes, folder: Path) -> None:
    """A network of one of the architectures, made small."""
    from convattn.nnx.network_file import restore_model

    _small_architectures()
    restore_model(weights(content))


@functools.cache
def _small_architectures() -> None:
    from convattn.nnx import architectures

    small = {"small": functools.partial(architectures.ConvNeXt, (1, 1), (4, 8))}
    architectures.ARCHITECTURES.update(small)


def model_seeds() -> list[bytes]:
    """A small ConvNeXt that was converted."""
    import jax.numpy as jnp
    from flax import nnx

    from convattn.nnx import to_attention
    from convattn.nnx.architectures import ARCHITECTURES
    from convattn.nnx.network_file import fold_batch_norms, model_bytes

    _small_architectures()
    model = ARCHITECTURES["small"](classes=2, rngs=nnx.Rngs(0))
    model.eval()
    folded = fold_batch_norms(model)
    made, _ = to_attention(folded, jnp.zeros((1, 16, 16, 3)))
    return [model_bytes(made, "small", 2, exact=True, head_dim=None)]


def read_state_dict(content: bytes, folder: Path) -> None:
    """A state dict of one of the architectures, by the names of torchvision and timm."""
    from convattn.nnx.checkpoint import from_state_dict

    _small_architectures()
    file = weights(content)
    from_state_dict({name: file[name] for name in file.arrays}, "small")


def state_dict_seeds() -> list[bytes]:
    """A small ConvNeXt."""
    from flax import nnx

    from convattn.networks.weights.formats import write_safetensors
    from convattn.nnx.architectures import ARCHITECTURES
    from convattn.nnx.checkpoint import tensors

    _small_architectures()
    model = nnx.eval_shape(lambda: ARCHITECTURES["small"](classes=3, rngs=nnx.Rngs(0)))
    arrays = {name: np.ones(tensor.shape, np.float32) for name, tensor in tensors(model)}
    return [write_safetensors(arrays, {}), _saved(np.savez_compressed, **arrays)]


def read_diagnosed(content: bytes, folder: Path) -> None:
    """What `convattn diagnose` reads, measured on an image of zeros."""
    from convattn.networks.diagnosis.diagnose import diagnose

    with np.errstate(all="ignore"):
        diagnose(weights(content), kernel_size=3)


def diagnosed_seeds() -> list[bytes]:
    """Vision transformers by the names of timm and Hugging Face, and attention probabilities."""
    from networks.diagnosis.small_transformers import hugging_face, timm_dict

    from convattn.networks.weights.formats import write_safetensors

    def saved(arrays: Mapping[str, np.ndarray]) -> bytes:
        return write_safetensors({k: a.astype(np.float32) for k, a in arrays.items()}, {})

    square = timm_dict(1)
    square["pos_embed"] = square["pos_embed"][:, :5]
    beit = timm_dict(1, beit=True)
    rows = np.random.default_rng(3).dirichlet(np.ones(4), size=(2, 3, 4)).astype(np.float32)
    return [saved(square), saved(hugging_face(square)), saved(beit), _saved(np.save, rows)]


# Images


def cifar_files(side: int = 1) -> dict[str, bytes]:
    """CIFAR-10, binary, of one image a batch."""
    from convattn.lab.data.cifar import TEST_BATCH, TRAINING_BATCHES

    return {name: bytes([3]) + bytes(3072) for name in (*TRAINING_BATCHES, TEST_BATCH)}


def cifar100_files() -> dict[str, bytes]:
    """CIFAR-100, binary, of one image a split."""
    names = {"fine": 100, "coarse": 20}
    texts = {
        f"{kind}_label_names.txt": b"\n".join(b"%s%d" % (kind.encode(), n) for n in range(count))
        for kind, count in names.items()
    }
    record = bytes([2, 71]) + bytes(3072)
    return {**texts, "train.bin": record, "test.bin": record}


def picture(mode: str, kind: str, size: tuple[int, int] = (6, 5), **how: Any) -> bytes:
    """A small picture of a mode in a format."""
    from PIL import Image

    held = io.BytesIO()
    noise = np.random.default_rng(0).integers(0, 256, (size[1], size[0], 3)).astype(np.uint8)
    image = Image.fromarray(noise)
    if mode == "I;16":
        image = Image.fromarray(noise[..., 0].astype(np.uint16) * 200)
    elif mode != "RGB":
        image = image.convert(mode)
    image.save(held, kind, **how)
    return held.getvalue()


def image_files() -> dict[str, bytes]:
    """Image folders of PNG and JPEG."""
    names = ("train/cat/1.png", "train/dog/1.jpg", "test/dog/2.png", "test/cat/3.png")
    kinds = [picture("RGB", "PNG"), picture("RGB", "JPEG"), picture("L", "PNG")]
    return dict(zip(names, (*kinds, kinds[0]), strict=True))


def tar_of(files: Mapping[str, bytes], mode: str = "w") -> bytes:
    """An archive of files."""
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode=mode) as archive:  # type: ignore[call-overload]
        for name, content in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return held.getvalue()


def read_archive(content: bytes, folder: Path) -> None:
    """A tar archive of images."""
    from convattn.lab.data.datasets import read_dataset

    path = folder / "given"
    path.write_bytes(content)
    read_dataset(path)


def archive_seeds() -> list[bytes]:
    """Archives of all three sets, with each compression, and a ZIP archive, which is refused."""
    images = image_files()
    return [
        tar_of(images),
        tar_of(images, "w:gz"),
        tar_of({f"set/{name}": content for name, content in images.items()}, "w:bz2"),
        tar_of(cifar100_files(), "w:xz"),
        tar_of(cifar_files(), "w:gz"),
        packed(images),
    ]


def read_folder(content: bytes, folder: Path) -> None:
    """A folder of images; an archive of it gives the same."""
    from convattn.lab.data.datasets import read_dataset

    given = unpacked(content, folder)
    problem: ValueError | None = None
    try:
        found = read_dataset(given)
    except ValueError as refused:
        problem = refused
    files = {
        p.relative_to(given).as_posix(): p.read_bytes() for p in given.rglob("*") if p.is_file()
    }
    empty = any(p.is_dir() and not any(p.iterdir()) for p in given.rglob("*"))
    if files and not empty and chosen(content, 10):
        archive = folder / "given.tar"
        archive.write_bytes(tar_of(files))
        try:
            theirs = read_dataset(archive)
            if problem is not None:
                raise Disagreement(f"the archive of the folder is read, but the folder: {problem}")
            same(found.train.images.tobytes(), theirs.train.images.tobytes(), "training images")
            same(found.test.labels.tobytes(), theirs.test.labels.tobytes(), "test labels")
        except ValueError as refused:
            if problem is None:
                raise Disagreement(f"the folder is read, but the archive: {refused}") from refused
    if problem is not None:
        raise problem


def folder_seeds() -> list[bytes]:
    """The three sets."""
    return [packed(files) for files in (image_files(), cifar100_files(), cifar_files())]


def read_sent_picture(content: bytes, folder: Path) -> None:
    """A picture that is sent to the explorer."""
    from convattn.page.explorer.pictures import read_picture

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = read_picture(content, (8, 8))
    same((found.shape, found.dtype), ((8, 8, 3), np.dtype(np.uint8)), "the shape")


def picture_seeds() -> list[bytes]:
    """A picture in each format, and PNG in each mode."""
    from PIL import Image

    exif = Image.Exif()
    exif[0x0112] = 6
    kinds = ("PNG", "JPEG", "WEBP", "BMP", "GIF", "TIFF", "PPM")
    modes = ("L", "1", "P", "LA", "RGBA", "I;16")
    return [
        *(picture("RGB", kind) for kind in kinds),
        *(picture(mode, "PNG") for mode in modes),
        picture("P", "PNG", transparency=0),
        picture("RGB", "JPEG", exif=exif),
        picture("L", "TIFF", compression="tiff_lzw"),
        picture("CMYK", "JPEG"),
    ]


def read_slice_file(content: bytes, folder: Path) -> None:
    """Another file in place of the bundled slice of CIFAR-10."""
    from convattn.ledger.images.cifar10_slice import FILE_NAME, read_slice

    (folder / FILE_NAME).write_bytes(content)
    try:
        read_slice(folder)
    finally:
        (folder / FILE_NAME).unlink()


# Runs


def run_files() -> bytes:
    """The folder of a run that was pruned."""
    import tempfile

    from lab.analysis.synthetic_runs import write_pruning, write_run

    with tempfile.TemporaryDirectory() as place:
        path = write_pruning(write_run(Path(place, "run"), snapshots=None, validation=(0.1, 0.2)))
        directory = json.loads((path / "run.json").read_text())
        directory["command"] = "python experiments/cifar.py"
        (path / "run.json").write_text(json.dumps(directory, indent=2) + "\n")
        return folder_bytes(path)


def read_run(content: bytes, folder: Path) -> None:
    """All that is read of a run but its checkpoints: each part may be refused."""
    from convattn.lab.analysis.curves import run_curves
    from convattn.lab.analysis.run_summary import head_numbers, read_summary
    from convattn.lab.analysis.snapshots import query_attention, read_layers, tokens_of
    from convattn.lab.analysis.table import table_row
    from convattn.lab.runs.directory import RunDirectory

    path = unpacked(content, folder)
    directory, problem = RunDirectory(path), None

    def attention() -> None:
        for layer in read_layers(path)[1]:
            query_attention(layer["scores"], (0, 0), tokens_of(layer["scores"]))

    parts: list[Callable[[], Any]] = [
        lambda: read_summary(path),
        lambda: run_curves(path).label,
        lambda: head_numbers(path),
        attention,
        directory.read_facts,
        directory.read_initial,
        directory.read_conversion,
    ]
    if chosen(content, 20):
        parts.append(lambda: table_row(path).cells())
    for part in parts:
        try:
            part()
        except ValueError as refused:
            problem = problem or refused
    if problem is not None:
        raise problem


def read_settings(content: bytes, folder: Path) -> None:
    """A config.json, and the sizes of its model, of which nothing is allocated."""
    from convattn.lab.models.sizes import abstract_model, flop_count, parameter_count
    from convattn.lab.runs.directory import RunDirectory

    folder = folder / "given"
    folder.mkdir()
    (folder / "config.json").write_bytes(content)
    settings = RunDirectory(folder).read_settings()
    parameter_count(abstract_model(settings.model))
    flop_count(settings.model)


def settings_seeds() -> list[bytes]:
    """One of each kind of model."""
    from convattn.lab.models import settings as models
    from convattn.lab.runs.settings import RunSettings
    from convattn.lab.settings import to_json

    kinds: list[Any] = [
        models.EncoderSettings(heads=(2,), width=8, inner=6),
        models.EncoderSettings(heads=(2,), width=8, inner=6, encoding="content"),
        models.ResNetSettings(channels=(4,), blocks=(1,)),
        models.SelfAttentiveResNetSettings(channels=(4,), blocks=(1,)),
        models.VisionTransformerSettings(depth=1, width=48, inner=6, heads=2, patch_size=4),
    ]
    return [json.dumps(to_json(RunSettings(model)), indent=2).encode() for model in kinds]


def read_records(content: bytes, folder: Path) -> None:
    """The record of a run, for a row of each kind, and of a comparison; each may be refused."""
    from convattn.lab.records.evidence import BackingPipeline
    from convattn.ledger.claim import Verdict
    from convattn.ledger.run import EvidenceFailed, Run

    path = folder / "given"
    path.write_bytes(content)
    problem = None
    checks = [*_backing(path), BackingPipeline(path, Verdict.REPRODUCED)]
    for check in checks:
        try:
            check(Run(0, True, path.parent))
        except EvidenceFailed as refused:
            problem = refused
    if problem is not None:
        raise problem


def _backing(path: Path) -> list[Any]:
    from convattn.lab.records.record import experiment_row

    rows = (experiment_row(f"C20.{name}")[1] for name in ("quadratic", "pruned"))
    return [replace(row, path=path) for row in rows]


def records_seeds() -> list[bytes]:
    """Records that count for a row."""
    from proofs.cordonnier2020_records import full_record

    rows = [check.row for check in _backing(Path("x"))]
    return [json.dumps(full_record(row, 0.938)).encode() for row in rows]


def read_trials(content: bytes, folder: Path) -> None:
    """The result of a run that compares initializers."""
    from convattn.lab.initialization.results import read_results

    (folder / "given.json").write_bytes(content)
    read_results(folder)


def trial_seeds() -> list[bytes]:
    """Results that are committed, with their curves made short."""
    paths = sorted((ROOT / "docs/measurements/initialization").rglob("*.json"))
    found = []
    for path in paths:
        result = json.loads(path.read_bytes())
        if isinstance(result, dict) and {"curve", "snapshots"} <= set(result):
            result |= {"curve": result["curve"][:2], "snapshots": result["snapshots"][:1]}
            found.append(json.dumps(result, separators=(",", ":")).encode())
    return found[:3]


def read_checkpoint(content: bytes, folder: Path) -> None:
    """The newest checkpoint of a folder; what is restored is what was saved."""
    from convattn.lab.training.checkpoints import CheckpointStore, digest
    from convattn.lab.training.state import named_arrays

    path = unpacked(content, folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = CheckpointStore(path).restore_newest(_state(0), set_aside=False)
    if found is not None:
        expected = digest(named_arrays(_state(found.step)))
        same(digest(named_arrays(found.state)), expected, "the state")


@functools.cache
def _state(step: int) -> Any:
    import jax
    import jax.numpy as jnp
    from lab.training.tiny import Normalized, settings

    from convattn.lab.training.optimizer import make_optimizer
    from convattn.lab.training.state import initial_state

    found = initial_state(Normalized(0), make_optimizer(settings(), 12), 0)[1]
    return jax.tree.map(lambda leaf: leaf + jnp.asarray(step, leaf.dtype), found)


def checkpoint_seeds() -> list[bytes]:
    """The checkpoints of steps 3 and 7, and that of step 7 alone."""
    import shutil
    import tempfile

    from convattn.lab.training.checkpoints import CheckpointStore

    with tempfile.TemporaryDirectory() as place:
        path = Path(place)
        store = CheckpointStore(path, 2)
        for step in (3, 7):
            store.save(_state(step), {"seconds": step / 3})
        store.close()
        both = folder_bytes(path)
        shutil.rmtree(path / "3")
        return [both, folder_bytes(path)]


# The explorer


def read_request(content: bytes, folder: Path) -> None:
    """Bytes that are sent to the explorer; every answer is one of those that it documents."""
    import socket

    port, problems = _server()
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(content.replace(b"PORT", b"%d" % port, 1))
        connection.shutdown(socket.SHUT_WR)
        answer = b""
        with contextlib.suppress(ConnectionResetError):
            while part := connection.recv(2**16):
                answer += part
    for line in re.findall(rb"HTTP/1\.1 (\d+)[^\r]*\r\n", answer):
        if line not in ANSWERS:
            raise Disagreement(f"the explorer answers {line!r}: {answer[:500]!r}")
    if problems:
        raise Disagreement(f"the explorer says {problems.pop()}")


ANSWERS = (*(b"200", b"201", b"202", b"400", b"403", b"404", b"405"), *(b"408", b"413", b"421"))
ANSWERS = (*ANSWERS, b"422", b"503", b"100")
TOKEN = "the-token"


@functools.cache
def _server() -> tuple[int, list[str]]:
    """The port of an explorer in a thread, and what it logs as an error."""
    import logging
    import threading
    import time

    import uvicorn

    from convattn.page.explorer.model import ExploredModel
    from convattn.page.explorer.run import Server, listening
    from convattn.page.explorer.server import explorer

    problems: list[str] = []
    handler = logging.Handler(logging.ERROR)
    handler.emit = lambda record: problems.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("uvicorn.error").addHandler(handler)
    model, held = ExploredModel(_explored_source(), reference=1), listening()
    model.measure()
    port = held.getsockname()[1]
    how: dict[str, Any] = {"log_level": "error", "access_log": False, "lifespan": "off"}
    how |= {"ws": "none", "loop": "asyncio", "http": "h11", "log_config": None}
    server = Server(uvicorn.Config(explorer(model, TOKEN, port), **how))
    threading.Thread(target=server.run, args=([held],), daemon=True).start()
    while not server.started:
        time.sleep(0.01)
    return port, problems


def _explored_source() -> Any:
    import tempfile

    from convattn.page.explorer.opening import open_source

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "layer.safetensors")
        path.write_bytes(layer_of_images())
        return open_source(path, image_size=(4, 4))


def layer_of_images() -> bytes:
    """A converted layer on pictures of three channels."""
    import jax.numpy as jnp

    import convattn as ca
    from convattn.networks.weights.stored_layer import encode, layer_arrays, layer_metadata

    kernel = jnp.asarray(np.random.default_rng(0).normal(size=(3, 3, 3, 2)), jnp.float32)
    layer = ca.conv_to_attention(kernel)
    return encode(layer_arrays(layer), layer_metadata(layer), ".safetensors")


def request_seeds() -> list[bytes]:
    """Each address of the explorer, and pictures that are sent."""
    addresses = (
        *("", "style.css", "api/model", "api/image?image=s0", "api/numbers?layer=0"),
        "api/attention?image=s0&layer=0&row=1&column=1",
        "api/outputs?image=s0&layer=0&channel=1",
    )
    head = "{} /" + TOKEN + "/{} HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n"
    asked = [head.format("GET", where) + "\r\n" for where in addresses]
    sent = [picture("RGB", "PNG"), picture("RGB", "JPEG")]
    posts = [
        (
            head.format("POST", "api/image") + f"X-File-Name: a%20b\r\nContent-Length: {len(body)}"
        ).encode()
        + b"\r\n\r\n"
        + body
        for body in sent
    ]
    return [*(text.encode() for text in asked), *posts]


def read_explored(content: bytes, folder: Path) -> None:
    """A file that the explorer opens, shown for one query."""
    from convattn.page.explorer.model import ExploredModel
    from convattn.page.explorer.opening import open_source

    path = folder / "given"
    path.write_bytes(content)
    with np.errstate(all="ignore"):
        model = ExploredModel(open_source(path, image_size=(4, 4)), reference=1)
        model.attention(model.samples[0], 0, (0, 0))


def explored_seeds() -> list[bytes]:
    """A converted layer, attention probabilities, a vision transformer and a network."""
    return [layer_of_images(), *diagnosed_seeds(), *network_seeds()]


def _readers() -> dict[str, Reader]:
    """All readers by their names, the quick ones first."""
    from convattn.ledger.images.cifar10_slice import DataIntegrityError
    from convattn.ledger.run import EvidenceFailed

    value = (ValueError,)
    found = [
        Reader("certificate", read_certificate, (), certificate_seeds),
        Reader("npy", read_arrays, value, npy_seeds),
        Reader("npz", read_arrays, value, npz_seeds),
        Reader("safetensors", read_arrays, value, safetensors_seeds),
        Reader("picture", read_sent_picture, value, picture_seeds),
        Reader("archive", read_archive, value, archive_seeds),
        Reader("folder", read_folder, value, folder_seeds, folder=True),
        Reader("slice", read_slice_file, (DataIntegrityError,), npz_seeds),
        Reader("records", read_records, (EvidenceFailed,), records_seeds),
        Reader("trials", read_trials, value, trial_seeds),
        Reader("diagnosed", read_diagnosed, value, diagnosed_seeds),
        Reader("request", read_request, (), request_seeds, allowed=("socket.connect",)),
        Reader("layer", read_layer, value, layer_seeds),
        Reader("network", read_network, value, network_seeds),
        Reader("settings", read_settings, value, settings_seeds),
        Reader("run", read_run, value, lambda: [run_files()], folder=True),
        Reader("state-dict", read_state_dict, value, state_dict_seeds),
        Reader("model", read_model, value, model_seeds),
        Reader("explored", read_explored, value, explored_seeds),
        Reader(
            "checkpoint", read_checkpoint, _checkpoint_refusals(), checkpoint_seeds, folder=True
        ),
    ]
    return {reader.name: reader for reader in found}


def _checkpoint_refusals() -> tuple[type[Exception], ...]:
    from convattn.lab.training.checkpoints import OtherModel
    from convattn.lab.training.failures import NoWholeCheckpoint

    return (NoWholeCheckpoint, OtherModel, OSError)


READERS = _readers()
