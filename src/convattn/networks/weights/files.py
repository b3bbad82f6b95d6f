"""Arrays in files, read without ever unpickling: `.npy`, `.npz` and `.safetensors`.

What a file is, its first bytes tell, not its name. A PyTorch checkpoint is a pickle, and to read a
pickle is to run the program in it, so it is refused with the way to convert it.
"""

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from convattn.files import brief, read_file
from convattn.networks.weights.formats import WeightsRefused, read_npy, read_npz, read_safetensors
from convattn.networks.weights.names import name_of_variable, plain_name, renamed
from convattn.networks.weights.pickles import refused_pickle
from convattn.networks.weights.reparametrisation import computed

MAX_LISTED, MAX_NAME = 20, 100  # arrays, and characters of a name
MAX_PROBLEM, MAX_MESSAGE = 200, 3000  # characters in one message
_LARGEST_ITEM = 8  # bytes; NumPy's longdouble has more, and JAX has none


@dataclass(frozen=True)
class WeightsFile:
    """The arrays of one file.

    Attributes:
        name: What messages call the file.
        arrays: By their names; a `.npy` file holds one, under the empty name. What PyTorch has
            re-parametrised is computed from its parts, which are not among them.
        metadata: The text that a safetensors file carries, or that `metadata` of an archive of this
            library holds.
        parts: The tensor that each part of a re-parametrised one belongs to.
        refused: Why a re-parametrised tensor cannot be computed, by its name.
        assumed: How one was read of which its parts do not say all, by its name.
    """

    name: str
    arrays: Mapping[str, np.ndarray]
    metadata: Mapping[str, str]
    parts: Mapping[str, str] = field(init=False, repr=False)
    refused: Mapping[str, str] = field(init=False, repr=False)
    assumed: Mapping[str, str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        for attribute, value in computed(self.arrays)._asdict().items():
            object.__setattr__(self, attribute, value)

    def with_plain_names(self) -> "WeightsFile":
        """The same with a dot or slash between the parts of all names (`name_of_variable`).

        >>> file = WeightsFile("net", {"['conv']['kernel']": np.ones((3, 3, 4, 8))}, {})
        >>> [*file.with_plain_names().arrays]
        ['conv.kernel']
        """
        names = renamed(self.arrays, name_of_variable)
        if all(plain == name for plain, name in names.items()):
            return self
        arrays = {plain: self.arrays[name] for plain, name in names.items()}
        result = WeightsFile(self.name, arrays, self.metadata)
        parts = {part: name_of_variable(tensor) for part, tensor in self.parts.items()}
        known = {"parts": parts, "refused": self.refused, "assumed": self.assumed}
        for attribute, texts in known.items():
            plain = {name_of_variable(name): text for name, text in texts.items()}
            object.__setattr__(result, attribute, plain | getattr(result, attribute))
        return result

    def require_no_part(self, name: str) -> None:
        """Refuse a part of a re-parametrised tensor, and a tensor that cannot be computed."""
        tensor = self.parts.get(name, name)
        while tensor in self.parts:
            tensor = self.parts[tensor]
        if tensor in self.refused:
            raise WeightsRefused(f"{self.name}: {self.refused[tensor]}")
        if name in self.parts:
            raise WeightsRefused(
                f"{self.name}: {brief(name)} is a part of a re-parametrised tensor, but expected "
                f"the tensor itself, {brief(tensor)}, which is computed from its parts"
            )

    def require_computed(self) -> None:
        """Refuse a file with a re-parametrised tensor that cannot be computed."""
        for name in self.refused:
            self.require_no_part(name)

    def tensors(self) -> dict[str, np.ndarray]:
        """All arrays by name, real and finite."""
        self.require_computed()
        return {name: self[name] for name in self.arrays}

    def __getitem__(self, name: str) -> np.ndarray:
        """The array of that name, real and finite."""
        self.require_no_part(name)
        if name not in self.arrays:
            raise WeightsRefused(f"{self.name} has no array {brief(name)}; {self.listing(name)}")
        label = f"{self.name}: {name[:MAX_PROBLEM]}" if name else self.name
        _require_numbers(self.arrays[name], label)
        require_finite(self.arrays[name], label)
        array = self.arrays[name]
        return array.astype(array.dtype.newbyteorder("="), copy=False)

    def floats(self, name: str) -> np.ndarray:
        """The same in float64, of a network that was trained."""
        array = self[name]
        if array.dtype.kind in "iub":
            raise WeightsRefused(
                f"{self.name}: {name} has dtype {array.dtype}, but expected floats; multiply "
                "quantised weights by their scales"
            )
        return array.astype(np.float64)

    def listing(self, requested: str = "", most: int = MAX_LISTED) -> str:
        """At most so many of the names and shapes, the closest to `requested` first."""
        if not self.arrays:
            return "it holds no arrays at all"
        layers = {name.replace("/", ".").rpartition(".")[0]: name for name in self.arrays}
        known = {**layers, **{name: name for name in self.arrays}}
        close = difflib.get_close_matches(requested, known, n=1, cutoff=0.5) if requested else []
        hint = f"did you mean {brief(known[close[0]])}? " if close else ""
        first = list(self.arrays.items())[:most]
        parts = [
            f"{brief(name, MAX_NAME) if name else f'one array of {array.dtype}'} {array.shape}"
            for name, array in first
        ]
        more = f" and {len(self.arrays) - len(first)} more" if len(self.arrays) > len(first) else ""
        return f"{hint}it holds {', '.join(parts)}{more}"


def read_weights(path: Path | str, ignored: Iterable[str] = ()) -> WeightsFile:
    """Read a file of arrays.

    Args:
        path: A `.npy`, `.npz` or `.safetensors` file, whatever it is called.
        ignored: The names of arrays, or of modules, that are left out.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "kernel.npy"
    >>> np.save(path, np.ones((3, 3, 1, 2)))
    >>> read_weights(path).arrays[""].shape
    (3, 3, 1, 2)
    """
    return parse_weights(read_file(Path(path)), str(path), ignored)


def parse_weights(content: bytes, name: str, ignored: Iterable[str] = ()) -> WeightsFile:
    """The same from the content of a file."""
    metadata: dict[str, str] = {}
    if content[:6] == b"\x93NUMPY":
        arrays = {"": read_npy(content, name)}
    elif content[:4] in (b"PK\x03\x04", b"PK\x05\x06"):
        arrays, metadata = read_npz(content, name)
    elif content[8:9] == b"{":
        arrays, metadata = read_safetensors(content, name)
    else:
        raise WeightsRefused(_unknown(content, name))
    for excluded in ignored:
        plain = plain_name(excluded)
        prefixes = (f"{plain}.", f"{plain}/")
        remaining = {
            k: v for k, v in arrays.items() if not f"{plain_name(k)}.".startswith(prefixes)
        }
        if len(remaining) == len(arrays):
            listing = WeightsFile(name, arrays, metadata).listing(excluded)
            raise WeightsRefused(f"{name} has no array or module {brief(excluded)}; {listing}")
        arrays = remaining
    return WeightsFile(name, arrays, metadata)


def _unknown(content: bytes, name: str) -> str:
    if not content:
        return f"{name} is empty; was the download or the copy interrupted?"
    if content[:1] == b"\x80" or content[:2] in (b"(l", b"(d", b"ci"):
        return refused_pickle(content, name)
    if content[:4] == b"\x89HDF":
        return f"{name} is an HDF5 file, which is not read here; save its arrays with numpy.savez"
    if content[:7] == b"version":
        return f"{name} is a Git LFS pointer, not the file itself; fetch it with git lfs pull"
    return (
        f"{name} starts with {content[:8]!r}, which is neither .npy, .npz nor .safetensors; "
        "save the weights in one of these, e.g. with numpy.savez or safetensors.numpy.save_file"
    )


def _require_numbers(array: np.ndarray, name: str) -> None:
    kind, size = array.dtype.kind, array.dtype.itemsize
    if array.dtype.name == "bfloat16" or (kind in "iuf" and size <= _LARGEST_ITEM):
        return
    if array.dtype.names is not None and len(array.dtype.names) == 1:
        raise WeightsRefused(
            f"{name} has the format {array.dtype.names[0][:100]}, but expected real numbers of "
            "16 to 64 bits; cast it, after multiplying by its scale if it has one"
        )
    if kind == "V" and size == 2:
        raise WeightsRefused(
            f"{name}.dtype={array.dtype}, two bytes of unknown meaning, which is what NumPy makes "
            "of bfloat16; save it as safetensors, or cast it to float32 first"
        )
    raise WeightsRefused(
        f"{name}.dtype={str(array.dtype)[:200]}, but expected real numbers of at most 64 bits; "
        "cast it to float32"
    )


def refuse(problems: list[str], what: str) -> None:
    """One error with all problems, cut if they are very many, if there are any."""
    if problems:
        message = "; ".join(problem[:MAX_PROBLEM] for problem in problems[:MAX_LISTED])
        cut = len(message) > MAX_MESSAGE or len(problems) > MAX_LISTED
        more = f"… ({len(problems)} problems)" if cut else ""
        raise WeightsRefused(f"{what}: {message[:MAX_MESSAGE]}{more}")


def has_64_bits(arrays: Iterable[np.ndarray]) -> bool:
    """Whether some numbers need JAX's 64-bit types, which only a command may enable.

    >>> has_64_bits([np.ones(1, np.float32)]), has_64_bits([np.ones(1)])
    (False, True)
    """
    return any(array.dtype.itemsize == _LARGEST_ITEM for array in arrays)


def require_finite(array: np.ndarray, name: str) -> None:
    """Refuse NaN and infinities."""
    bad = ~np.isfinite(array.astype(np.float32) if array.dtype.kind == "V" else array)
    if bad.any():
        first = tuple(int(index) for index in np.argwhere(bad)[0])
        raise WeightsRefused(
            f"{name} has {int(bad.sum())} non-finite entries, the first at index {first}, but "
            "every weight must be finite; look for a diverged training run or an overflow on cast"
        )
