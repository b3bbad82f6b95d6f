"""Models of other frameworks, recognised by the module of their class."""

from typing import Any

from flax import nnx

# The first part of the module of a class, and what to do.
FRAMEWORKS = {
    "flax.linen": "a Linen module: write it as an nnx.Module (flax.nnx.bridge.ToNNX keeps "
    "nn.Conv inside, which is not converted)",
    "equinox": "an Equinox module",
    "haiku": "a Haiku module",
    "keras": "a Keras model",
    "torch": "a PyTorch module: save model.state_dict() with safetensors",
}
REMEDY = (
    "; convert its kernels with convattn.conv_to_attention, and call convattn.apply_attention in "
    "place of each convolution"
)


def require_module(model: Any) -> None:
    """Refuse what is no `nnx.Module`, and say what to do with a model of another framework.

    Raises:
        ValueError: As described above.
    """
    if isinstance(model, nnx.Module):
        return
    kind = model if isinstance(model, type) else type(model)
    if isinstance(model, type) and issubclass(model, nnx.Module):
        raise ValueError(f"model={kind.__name__} is a class, but expected a model: call the class")
    for base in kind.__mro__:
        for name, words in FRAMEWORKS.items():
            if base.__module__ == name or base.__module__.startswith(f"{name}."):
                raise ValueError(
                    f"model={kind.__name__} is {words}, but expected an nnx.Module{REMEDY}"
                )
    raise ValueError(f"model={kind.__name__}, but expected an nnx.Module")
