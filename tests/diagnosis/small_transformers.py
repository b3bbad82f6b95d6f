"""Small vision transformers with random weights, as state dicts by timm's or other names."""

import re

import numpy as np

WIDTH, HIDDEN, PATCH = 8, 12, 4
SIDES = (2, 3)  # tokens

TO_FILES = [  # timm's names to those of Hugging Face's files
    (r"^blocks\.(\d+)\.", r"vit.encoder.layer.\1."),
    (r"^cls_token$", "vit.embeddings.cls_token"),
    (r"^dist_token$", "vit.embeddings.distillation_token"),
    (r"^pos_embed$", "vit.embeddings.position_embeddings"),
    (r"^patch_embed\.proj", "vit.embeddings.patch_embeddings.projection"),
    (r"\.norm1\.", ".layernorm_before."),
    (r"\.norm2\.", ".layernorm_after."),
    (r"\.attn\.proj\.", ".attention.output.dense."),
    (r"\.mlp\.fc1\.", ".intermediate.dense."),
    (r"\.mlp\.fc2\.", ".output.dense."),
    (r"\.gamma_(\d)$", r".lambda_\1"),
    (r"^norm\.", "vit.layernorm."),
    (r"^head\.", "classifier."),
    (
        r"\.attn\.(relative_position_bias_table)$",
        r".attention.attention.relative_position_bias.\1",
    ),
]
TO_MEMORY = [  # and those of transformers 5
    (r"\.encoder\.layer\.", ".layers."),
    (r"\.attention\.attention\.(query|key|value)\.", lambda m: f".attention.{m[1][0]}_proj."),
    (r"\.attention\.output\.dense\.", ".attention.o_proj."),
    (r"\.intermediate\.dense\.", ".mlp.fc1."),
    (r"\.output\.dense\.", ".mlp.fc2."),
    (r"\.attention\.attention\.relative", ".relative"),
]


def timm_dict(
    depth: int = 2, *, heads: int = 2, seed: int = 0, beit: bool = False, distilled: bool = False
) -> dict[str, np.ndarray]:
    """A ViT or DeiT, or a BEiT with tables, for images of 8 × 12 pixels of 3 channels."""
    rng = np.random.default_rng(seed)
    shapes: dict[str, tuple[int, ...]] = {
        "cls_token": (1, 1, WIDTH),
        "patch_embed.proj.weight": (WIDTH, 3, PATCH, PATCH),
        "patch_embed.proj.bias": (WIDTH,),
        "norm.weight": (WIDTH,),
        "norm.bias": (WIDTH,),
        "head.weight": (3, WIDTH),
        "head.bias": (3,),
    }
    tokens = SIDES[0] * SIDES[1]
    if distilled:
        shapes["dist_token"] = (1, 1, WIDTH)
    if not beit:
        shapes["pos_embed"] = (1, tokens + 1 + distilled, WIDTH)
    for block in range(depth):
        parts: dict[str, tuple[int, ...]] = {
            "norm1.weight": (WIDTH,),
            "norm1.bias": (WIDTH,),
            "attn.qkv.weight": (3 * WIDTH, WIDTH),
            "attn.proj.weight": (WIDTH, WIDTH),
            "attn.proj.bias": (WIDTH,),
            "norm2.weight": (WIDTH,),
            "norm2.bias": (WIDTH,),
            "mlp.fc1.weight": (HIDDEN, WIDTH),
            "mlp.fc1.bias": (HIDDEN,),
            "mlp.fc2.weight": (WIDTH, HIDDEN),
            "mlp.fc2.bias": (WIDTH,),
        }
        if beit:
            rows = (2 * SIDES[0] - 1) * (2 * SIDES[1] - 1) + 3
            parts |= {"attn.relative_position_bias_table": (rows, heads), "gamma_1": (WIDTH,)}
            parts |= {"attn.q_bias": (WIDTH,), "attn.v_bias": (WIDTH,), "gamma_2": (WIDTH,)}
        else:
            parts["attn.qkv.bias"] = (3 * WIDTH,)
        shapes |= {f"blocks.{block}.{name}": shape for name, shape in parts.items()}
    return {name: rng.normal(size=shape) for name, shape in shapes.items()}


def hugging_face(arrays: dict[str, np.ndarray], memory: bool = False) -> dict[str, np.ndarray]:
    """The same weights by Hugging Face's names, as in its files or as in memory."""
    renamed = {}
    for name, array in arrays.items():
        if ".attn.qkv." in name:
            parts = zip(("query", "key", "value"), np.split(array, 3), strict=True)
            new = {name.replace("attn.qkv", f"attention.attention.{n}"): a for n, a in parts}
        elif name.endswith(("q_bias", "v_bias")):
            word = {"q": "query", "v": "value"}[name[-6]]
            new = {f"{name[:-11]}attention.attention.{word}.bias": array}
        else:
            new = {name: array}
        renamed |= new
    rules = TO_FILES + (TO_MEMORY if memory else [])
    for pattern, replacement in rules:
        renamed = {re.sub(pattern, replacement, name): array for name, array in renamed.items()}
    return renamed


def images(count: int = 3, seed: int = 1) -> np.ndarray:
    """Normalised images of the right size."""
    sides = tuple(side * PATCH for side in SIDES)
    return np.random.default_rng(seed).normal(size=(count, *sides, 3))
