"""PyTorch's files: looked at without unpickling, and the script that converts the one at hand.

The script runs where PyTorch is, not here. A pickle names the classes that it calls, and
`pickletools` lists them without calling any.
"""

import io
import pickletools
from zipfile import ZipFile

from convattn.files import SCRIPT_FOLLOWS, brief, most_unpacked

DATA = frozenset(("collections", "torch", "torch._utils", "torch.nn.parameter", "torch._tensor"))
MAGIC = (0x1950A86A20F9469CFC6C).to_bytes(10, "little")  # of torch.save
PROTOCOL = b"\x80\x02"  # the one that weights_only reads
_PICKLES = 5  # in a file of PyTorch before 1.6: a magic number, a version, the system, the object
SCRIPT = """\
import torch
from safetensors.torch import save_file

def state_dicts(value):
    value = value.state_dict() if isinstance(value, torch.nn.Module) else value
    if isinstance(value, dict):
        yield {str(k): v for k, v in value.items() if torch.is_tensor(v)}
        for key, inner in value.items():
            if "optim" not in str(key):
                yield from state_dicts(inner)

state = max(state_dicts(LOAD), key=len)
state = {k: v.detach().clone(memory_format=torch.contiguous_format) for k, v in state.items()}
save_file(state, "weights.safetensors")
"""
_PLAIN_SCRIPT = """\
import pickle, numpy
with open(FILE, "rb") as file:
    numpy.savez("weights.npz", **pickle.load(file))  # arrays by name
"""


def refused_archive(archive: ZipFile, size: int, name: str) -> str | None:
    """Why a ZIP archive with a pickle is not read, and how to convert it; None if it has none.

    Args:
        archive: The file.
        size: Its bytes.
        name: What the script calls it.
    """
    pickled = [info for info in archive.infolist() if info.filename.endswith(".pkl")]
    if not pickled:
        return None
    if any("/code/" in f"/{member}" for member in archive.namelist()):
        load = f"torch.jit.load({name!r}, map_location='cpu')"
        return _refusal(f"{name} is a TorchScript archive, which holds a program", load)
    content, most = b"", most_unpacked(size)
    for info in pickled:
        if info.filename.endswith("data.pkl") and info.file_size <= most:
            try:
                content = archive.read(info)
            except Exception:  # damaged: what zipfile and zlib raise; the script will say so
                content = b""
    return _of_checkpoint(content, name)


def refused_pickle(content: bytes, name: str) -> str:
    """Why a bare pickle is not read, and how to convert it.

    >>> import pickle
    >>> print(refused_pickle(pickle.dumps({"a": 1}), "net.pkl").partition("; ")[0])
    net.pkl is a pickle, and reading one runs the program in it
    """
    if MAGIC in content[:20]:
        return _of_checkpoint(content, name)
    if any(module.partition(".")[0] == "torch" for module in _modules(content)):
        what = f"{name} is a pickle of PyTorch's tensors"
        return _refusal(what, f"__import__('pickle').load(open({name!r}, 'rb'))")
    script = _PLAIN_SCRIPT.replace("FILE", repr(name))
    return (
        f"{name} is a pickle, and reading one runs the program in it; where it is trusted, "
        f"{SCRIPT_FOLLOWS}{script}"
    )


def _of_checkpoint(content: bytes, name: str) -> str:
    """The same for a file of `torch.save`."""
    others = sorted(_modules(content) - DATA)
    only = not others and content[:2] in (b"", PROTOCOL)
    what = f"{name} is a PyTorch checkpoint, which holds a pickle"
    if others:
        what += f" with objects of {', '.join(brief(module, 60) for module in others[:4])}"
    return _refusal(what, f"torch.load({name!r}, map_location='cpu', weights_only={only})")


def _refusal(what: str, load: str) -> str:
    return (
        f"{what}, and reading one runs the program in it; where it is trusted and its modules can "
        f"be imported, {SCRIPT_FOLLOWS}{SCRIPT.replace('LOAD', load)}"
    )


def _modules(content: bytes) -> set[str]:
    """The modules whose classes or functions the pickles of a file name."""
    modules: set[str] = set()
    stream, strings = io.BytesIO(content), ["", ""]
    memo: list[str] = []
    try:
        for _ in range(_PICKLES):
            for opcode, argument, _ in pickletools.genops(stream):
                if opcode.name in ("GLOBAL", "INST"):
                    modules.add(str(argument).partition(" ")[0])
                elif opcode.name == "STACK_GLOBAL":
                    modules.add(strings[-2])
                elif opcode.name == "MEMOIZE":
                    memo.append(strings[-1])
                elif opcode.name in ("BINGET", "LONG_BINGET") and memo:
                    strings = [strings[-1], memo[int(argument or 0)]]
                elif isinstance(argument, str):
                    strings = [strings[-1], argument]
    except Exception:  # the end, or bytes that are no pickle: anything
        return modules
    return modules
