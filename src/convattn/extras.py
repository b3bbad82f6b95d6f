"""The optional packages, and the extra that brings each: ``pip install 'convattn[nnx]'``."""

from importlib.util import find_spec

EXTRA = {
    "tyro": "cli",
    "rich": "cli",
    "flatbuffers": "cli",
    "pebble": "verify",
    "flax": "nnx",
    "pydantic": "nnx",
    "matplotlib": "plot",
    "optax": "experiments",
    "orbax": "experiments",
    "PIL": "experiments",
    "pooch": "experiments",
    "tensorboardX": "experiments",
    "sklearn": "sklearn",
    "starlette": "explore",
    "uvicorn": "explore",
    "h11": "explore",
    "torch": "torch",
    "torchax": "torch",
    "torchvision": "torch",
    "timm": "torch",
    "captum": "explanations",
    "jax2onnx": "onnx",
    "onnxruntime": "onnx",
}


REPOSITORY = {"convattn_lab"}  # packages that no wheel holds


def remedy(package: str) -> str:
    """What to do where a package is missing, or the empty text if it comes with no extra.

    >>> remedy("flax")
    "flax is not installed; it comes with an extra: pip install 'convattn[nnx]'"
    """
    if package in REPOSITORY:
        return f"{package} is in the repository only: clone it, and `make install` there"
    if package not in EXTRA:
        return ""
    install = f"pip install 'convattn[{EXTRA[package]}]'"
    return f"{package} is not installed; it comes with an extra: {install}"


def missing(error: ModuleNotFoundError) -> str:
    """What to do about a failed import, or the empty text if no extra brings the package."""
    return remedy((error.name or "").partition(".")[0])


def require(package: str) -> None:
    """Refuse to go on without an optional package.

    Raises:
        ModuleNotFoundError: If it is not installed; says which extra brings it.
    """
    if find_spec(package) is None:
        raise ModuleNotFoundError(remedy(package), name=package)
