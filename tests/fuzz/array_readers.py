"""Files of arrays: `.npy`, `.npz` and safetensors, beside NumPy and the library of safetensors."""

import contextlib
import io
from pathlib import Path
from typing import Any

import numpy as np

from fuzz.reader import Disagreement, chosen, command, same


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
        message = command(folder, content, "convert kernel", "--layer", "no such layer")
        reason = "has no layer" if refused is None else str(refused).partition("given")[2][:20]
        if reason not in message and "is an attention layer" not in message and "\\" not in message:
            raise Disagreement(f"the library says {refused}, the command {message}")
    if refused is not None:
        raise refused
    find_convolution(file, None, "auto", "kernel")


def _compared(content: bytes, file: Any) -> None:
    from safetensors.numpy import load

    ours, theirs = file.arrays, {}
    if any(not array.dtype.itemsize for array in ours.values()):
        return  # NumPy finds no end of these
    try:
        if content[:6] == b"\x93NUMPY":
            theirs = {"": np.load(io.BytesIO(content), allow_pickle=False)}
        elif content[:2] == b"PK":
            with np.load(io.BytesIO(content), allow_pickle=False) as archive:
                theirs = {name: archive[name] for name in archive.files}
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
    return [saved_by(np.save, array) for array in (*arrays, fortran, np.array([True, False]))]


def saved_by(save: Any, *arrays: Any, **kwargs: Any) -> bytes:
    buffer = io.BytesIO()
    save(buffer, *arrays, **kwargs)
    return buffer.getvalue()


def npz_seeds() -> list[bytes]:
    """Archives with and without compression, and one of this library with bfloat16."""
    import jax.numpy as jnp

    from convattn.networks.weights.formats import write_npz

    arrays = _arrays()
    wide = {**arrays, "narrow": np.asarray(jnp.ones(3, jnp.bfloat16))}
    return [
        saved_by(np.savez, **arrays),
        saved_by(np.savez_compressed, **arrays),
        saved_by(np.savez, conv=arrays["conv.weight"]),
        write_npz(wide, {"format": "pt"}),
    ]


def safetensors_seeds() -> list[bytes]:
    """Files with and without metadata."""
    from convattn.networks.weights.formats import write_safetensors

    arrays = _arrays()
    one = {"kernel": arrays["conv.weight"]}
    return [write_safetensors(arrays, {}), write_safetensors(one, {"format": "flax"})]
