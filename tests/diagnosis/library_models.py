"""Small vision transformers of other libraries, and the attention of their own runs.

`python library_models.py` writes `library_attention.json` where the libraries are installed; the
run of Google's needs `vit_jax` of github.com/google-research/vision_transformer. Every tensor holds
the `waves` of its place among the sorted names.
"""

import json
import math
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

STORED = Path(__file__).with_name("library_attention.json")
WIDTH, HIDDEN, PATCH, SIDE, HEADS, LAYERS = 16, 24, 4, 12, 4, 2
SIZES = {
    **{"image_size": SIDE, "patch_size": PATCH, "hidden_size": WIDTH, "num_hidden_layers": LAYERS},
    "num_attention_heads": HEADS,
}
OF_TIMM = {
    **{"img_size": SIDE, "patch_size": PATCH, "embed_dim": WIDTH, "depth": LAYERS},
    **{"num_heads": HEADS, "mlp_ratio": HIDDEN / WIDTH, "num_classes": 3},
}
TIMM = {
    "timm SigLIP": "vit_base_patch16_siglip_224",
    "timm CLIP": "vit_base_patch16_clip_224",
    "timm CLIP, quick GELU": "vit_base_patch16_clip_quickgelu_224",
    "timm DINOv2 with registers": "vit_small_patch14_reg4_dinov2",
}
HUGGING_FACE = {
    "Hugging Face DINOv2": ("Dinov2", {"mlp_ratio": 2}),
    "Hugging Face DINOv2 with registers": ("Dinov2WithRegisters", {"mlp_ratio": 2}),
    "Hugging Face SigLIP": ("SiglipVision", {"intermediate_size": HIDDEN}),
    "Hugging Face CLIP": ("CLIPVision", {"intermediate_size": HIDDEN}),
}


def waves(shape: tuple[int, ...], k: int) -> np.ndarray:
    """Numbers of either sign, different in each tensor and at each place."""
    return (0.4 * np.sin(0.7 * np.arange(math.prod(shape)) + k)).reshape(shape)


def state_dict(shapes: dict[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    """The tensors of these shapes."""
    return {name: waves(tuple(shapes[name]), k) for k, name in enumerate(sorted(shapes))}


def stored_dict(kind: str) -> dict[str, np.ndarray]:
    """Those of a network whose attention is stored."""
    return state_dict(json.loads(STORED.read_text())[kind]["shapes"])


IMAGES = np.concatenate([waves((1, SIDE, SIDE, 3), 5), waves((1, SIDE, SIDE, 3), 7)])


def of_torch(kind: str, torch: Any, package: Any) -> tuple[dict, list[np.ndarray], Any]:
    """The state dict of a network of PyTorch, the attention of each layer, and the network."""
    if kind in HUGGING_FACE:
        name, more = HUGGING_FACE[kind]
        settings = getattr(package, f"{name}Config")(**SIZES, **more, attn_implementation="eager")
        model = getattr(package, f"{name}Model")(settings)
    elif kind == "torchvision":
        model = package.models.VisionTransformer(SIDE, PATCH, LAYERS, HEADS, WIDTH, HIDDEN)
    else:
        model = package.create_model(TIMM[kind], **OF_TIMM)
    model = model.double().eval()
    shapes = {name: tuple(value.shape) for name, value in model.state_dict().items()}
    shapes = {name: shape for name, shape in shapes.items() if not name.endswith("position_ids")}
    arrays = state_dict(shapes)
    model.load_state_dict({name: torch.from_numpy(array) for name, array in arrays.items()})
    attention: list[Any] = []
    pixels = torch.from_numpy(IMAGES.transpose(0, 3, 1, 2).copy())
    with torch.no_grad(), softmax_in_float64(torch), weights_of_attention(torch, attention):
        if kind in HUGGING_FACE:
            attention[:] = model(pixels, output_attentions=True).attentions
        else:
            for block in getattr(model, "blocks", []):
                block.attn.fused_attn = False
                block.attn.attn_drop.register_forward_pre_hook(
                    lambda _, args: attention.append(args[0])
                )
            model(pixels)
    return arrays, [each.numpy() for each in attention], model


@contextmanager
def softmax_in_float64(torch: Any) -> Any:
    """Hugging Face's is in float32 whatever the model is in."""
    softmax = torch.nn.functional.softmax
    in_float64 = lambda scores, dim, dtype=None, **_: softmax(scores, dim)  # noqa: E731
    with mock.patch.object(torch.nn.functional, "softmax", in_float64):
        yield


@contextmanager
def weights_of_attention(torch: Any, attention: list[Any]) -> Any:
    """Record the weights of `torch.nn.MultiheadAttention`, which torchvision does not ask for."""
    forward = torch.nn.MultiheadAttention.forward

    def recorded(module: Any, *args: Any, **options: Any) -> Any:
        options |= {"need_weights": True, "average_attn_weights": False}
        result, weights = forward(module, *args, **options)
        attention.append(weights)
        return result, weights

    with mock.patch.object(torch.nn.MultiheadAttention, "forward", recorded):
        yield


def of_google() -> tuple[dict, list[np.ndarray]]:
    """The same of Google's ViT, whose parameters have their names in its `.npz` files."""
    import flax.linen as nn
    import jax
    from flax.traverse_util import flatten_dict, unflatten_dict

    with mock.patch.object(jax.numpy, "float32", np.float64):  # the dtype of its blocks
        from vit_jax.models_vit import VisionTransformer

    transformer = {"num_layers": LAYERS, "mlp_dim": HIDDEN, "num_heads": HEADS}
    patches = type("Patches", (), {"size": (PATCH, PATCH)})
    model = VisionTransformer(3, patches, transformer, WIDTH)
    shapes = jax.eval_shape(lambda: model.init(jax.random.key(0), IMAGES, train=False))["params"]
    arrays = state_dict(
        {name: shape.shape for name, shape in flatten_dict(shapes, sep="/").items()}
    )
    weights, attention = nn.attention.dot_product_attention_weights, []

    def recorded(*args: Any, **options: Any) -> Any:
        attention.append(weights(*args, **options))
        return attention[-1]

    with mock.patch.object(nn.attention, "dot_product_attention_weights", recorded):
        model.apply({"params": unflatten_dict(arrays, sep="/")}, IMAGES, train=False)
    return arrays, [np.asarray(each) for each in attention]


def main() -> None:
    """Write what they compute: of the last image and head the last row but one, of each layer."""
    import jax
    from torch_packages import torch_package

    jax.config.update("jax_enable_x64", True)
    packages = dict.fromkeys(HUGGING_FACE, "transformers") | dict.fromkeys(TIMM, "timm")
    stored = {}
    for kind, name in (packages | {"torchvision": "torchvision"}).items():
        arrays, attention, _ = of_torch(kind, *torch_package(name))
        stored[kind] = (f"{name} {version(name)}", arrays, attention)
    stored["Google"] = (f"vit_jax with flax {version('flax')}", *of_google())
    lines = [
        f"{json.dumps(kind)}: "
        + json.dumps(
            {
                "library": library,
                "shapes": {name: array.shape for name, array in sorted(arrays.items())},
                "attention": [each[-1, -1, -2].round(12).tolist() for each in attention],
            }
        )
        for kind, (library, arrays, attention) in stored.items()
    ]
    STORED.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
