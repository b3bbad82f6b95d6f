"""Models of other frameworks, recognised by the module of their class."""

from typing import Any

from flax import nnx

# The first part of the module of a class, and what to do.
FRAMEWORKS = {
    "flax.linen": ("a Linen module", "lambda images: model.apply(variables, images)"),
    "equinox": ("an Equinox module", "jax.vmap(model)"),
    "haiku": ("a Haiku module", "lambda images: transformed.apply(parameters, key, images)"),
    "keras": ("a Keras model", "lambda images: model(images, training=False)"),
}


def require_module(model: Any) -> None:
    """Refuse what is no `nnx.Module`, and say what to do with a model of another framework."""
    if isinstance(model, nnx.Module):
        return
    kind = model if isinstance(model, type) else type(model)
    if isinstance(model, type) and issubclass(model, nnx.Module):
        raise ValueError(f"model={kind.__name__} is a class, but expected a model: call the class")
    for base in kind.__mro__:
        module = f"{base.__module__}."
        for name, (words, function) in FRAMEWORKS.items():
            if module.startswith(f"{name}."):
                raise ValueError(
                    f"model={kind.__name__} is {words}, but expected an nnx.Module; call "
                    f"convattn.attention_of({function}, images)"
                )
        if module.startswith("torch."):
            raise ValueError(
                f"model={kind.__name__} is a PyTorch module, but expected an nnx.Module; call "
                "convattn.torch.to_attention(model, images)"
            )
    raise ValueError(f"model={kind.__name__}, but expected an nnx.Module")
