"""What the names of a state dict tell: a prefix before all of them, and the kind of network."""

import re
from collections.abc import Callable, Iterable, Mapping
from itertools import takewhile
from typing import Any

import numpy as np

_GATED = "a ViT with gated MLPs (SwiGLU), such as EVA-02 or the giant DINOv2"
_RES_POST = (
    "a ViT that normalises what its blocks add, as timm's vit_base_patch16_rpn_224 and "
    "eva02_enormous_patch14_clip_224"
)
_QKV = "blocks.0.attn.qkv.weight"
ENORMOUS = 1792  # the width of EVA-02-E, whose tensors are else those of the EVA-CLIP before it
_NOT_IN_RPN = (  # but in timm's networks with a norm behind pooling and pre-norm blocks
    *("cls_token", "blocks.0.attn.qkv.bias", "blocks.0.attn.q_bias", "blocks.0.ls1.gamma"),
    *("blocks.0.gamma_1", "norm.weight", "norm_pre.weight"),
)
_READ = {  # by convattn diagnose: what one of the names is, below any prefix
    r"encoder\.layers\.encoder_layer_\d+\.self_attention\..*": "a ViT of torchvision",
    r"Transformer/encoderblock_\d+/.*": "a ViT of Google's vision_transformer",
    r"embeddings\.patch_embedding\..*": "a CLIP or SigLIP of Hugging Face",
    r"layers\.\d+\.blocks\.\d+\.attn\..*": "a Swin of timm",
    r"blocks\.\d+\.attn\.qkv\..*": "a ViT of timm",
    r"encoder\.layer\.\d+\.attention\.attention\.query\..*": "a ViT of Hugging Face",
    r"(encoder\.layer|layers)\.\d+\.attention\.q_proj\..*": "a ViT of Hugging Face",
}
UNREAD = {
    r"(blocks|encoder\.layer)\.\d+\.mlp\.(fc1_g|w1|w12|weights_in|gate_proj)\..*": _GATED,
    r"transformers\.\d+\.blocks\.\d+\.attn\.qkv\..*": "a PiT of timm",
    r"transformer\.layers\.\d+\.\d+\.(fn\.)?to_qkv\..*": "a ViT of lucidrains' vit-pytorch",
    r"attention\.self\.(attention_(centers|spreads)|(row|col)_embeddings\..*|head_keys.*)": (
        "a network of Cordonnier's attention-cnn"
    ),
}
RECORD = (
    "which diagnose does not read; record its attention probabilities in a hook, an array [images, "
    'heads, queries, keys] for each layer, and give them as .npz (docs/diagnose.md, "A network '
    'that is not read")'
)
_RESNETS: dict[tuple[bool, tuple[int, ...]], str] = {
    (False, (2, 2, 2, 2)): "resnet18",
    (False, (3, 4, 6, 3)): "resnet34",
    (True, (3, 4, 6, 3)): "resnet50",
    (True, (3, 4, 23, 3)): "resnet101",
    (True, (3, 8, 36, 3)): "resnet152",
}
_BASE_WIDTH = 64  # of the 3 × 3 convolutions in the first stage of a ResNet
_JOINT = re.compile(r"[./]?(?:-+>|[^\w\-~./:]|:(?!\d+$))+[./]?")  # a number behind is Keras's
_VARIABLE = re.compile(
    r"(?P<own>(.*[./])?(\w*(kernel|weight|bias)|w|b))[./](raw_value|value|\.ATTRIBUTES/VARIABLE_VALUE)"
)


def plain_name(name: str) -> str:
    """A name with a dot or slash between its parts, however it was put together.

    As by `keystr` of JAX, by `flatten_dict` of Flax with another separator, or from a variable.

    >>> plain_name("['conv']['kernel']"), plain_name("conv:::kernel"), plain_name("a/b.c:0")
    ('conv.kernel', 'conv.kernel', 'a/b.c:0')
    """
    return _JOINT.sub(".", name).strip(".") or name


def name_of_variable(name: str) -> str:
    """The plain name, of a kernel or a bias without the word for a variable's value.

    >>> name_of_variable("['conv']['kernel'].value")
    'conv.kernel'
    """
    plain = plain_name(name)
    match = _VARIABLE.fullmatch(plain)
    return match["own"] if match else plain


def path_of(name: str) -> tuple[str, ...]:
    """The parts of a name, those that Haiku joins by two underscores among them.

    >>> path_of("sn_params_tree/conv__w/u0")
    ('sn_params_tree', 'conv', 'w', 'u0')
    """
    return tuple(part for part in re.split(r"[./]|__+", name) if part)


def is_subsequence(some: Iterable[str], parts: Iterable[str]) -> bool:
    """Whether all of some are among the parts, in their order.

    >>> is_subsequence("ac", "abc"), is_subsequence("ca", "abc")
    (True, False)
    """
    rest = iter(parts)
    return all(part in rest for part in some)


def bare(name: str) -> str:
    """Without the number that Keras and TensorFlow put behind a variable.

    >>> bare("conv/kernel:0")
    'conv/kernel'
    """
    return re.sub(r":\d+$", "", name)


def renamed(names: Iterable[str], rule: Callable[[str], str]) -> dict[str, str]:
    """Each name by its new one; of two that would be called the same one keeps its own.

    >>> renamed(["a,b", "a.b", "c[0]"], plain_name)
    {'a.b': 'a.b', 'a,b': 'a,b', 'c.0': 'c[0]'}
    """
    result: dict[str, str] = {}
    for name in sorted(names, key=lambda name: rule(name) != name):
        result[name if rule(name) in result else rule(name)] = name
    return result


def common_prefix(names: Iterable[str]) -> str:
    """The modules that every tensor stands below, such as `module.` of DataParallel.

    >>> common_prefix(["module.net.fc.weight", "module.net.fc2.bias"]), common_prefix(["fc.bias"])
    ('module.net.', '')
    """
    parts = [name.split(".")[:-1] for name in names]
    shared = zip(*parts, strict=False) if len(parts) > 1 else ()
    return "".join(f"{same[0]}." for same in takewhile(lambda part: len({*part}) == 1, shared))


def prefixes_of(names: Iterable[str], expected: str) -> list[str]:
    """What stands before a name in those of a file, where it does not stand alone.

    >>> prefixes_of(["backbone.conv1.weight", "head.weight"], "conv1.weight")
    ['backbone.']
    """
    return [name.removesuffix(expected) for name in names if name.endswith(f".{expected}")]


def looks_like(arrays: Mapping[str, Any]) -> str | None:
    """What network the tensors look like, by names and shapes; None if nothing tells.

    >>> looks_like({"module.blocks.0.attn.qkv.weight": np.ones((6, 2))})[:13]
    'a ViT of timm'
    """
    kind = _unread(arrays) or _named(arrays, _READ)
    return f"{kind}, and a vision transformer is for convattn diagnose" if kind else _resnet(arrays)


def unread_network(arrays: Mapping[str, Any]) -> str | None:
    """A network that `convattn diagnose` does not read, and what to do; None for others.

    >>> unread_network({"module.transformers.0.blocks.0.attn.qkv.weight": np.ones((6, 2))})[:37]
    'a PiT of timm, which diagnose does no'
    """
    if kind := _unread(arrays):
        return f"{kind}, {RECORD}"
    kind = _resnet(arrays)
    if not kind and {4} <= {np.ndim(array) for array in arrays.values()} <= {0, 1, 4}:
        kind = "a network of convolutions alone"
    if kind and not _named(arrays, _READ):
        return f"{kind}, which has no attention heads and is for convattn convert kernel"
    return None


def _named(arrays: Mapping[str, Any], kinds: Mapping[str, str]) -> str | None:
    for pattern, kind in kinds.items():
        if any(re.fullmatch(rf"(.*[./])?{pattern}", name) for name in arrays):
            return kind
    return None


def _unread(arrays: Mapping[str, Any]) -> str | None:
    """Also MLPs that are gated by one matrix: it has twice the rows that the next has columns.

    And blocks that normalise what they add, x + LN(Attention(x)): their tensors have the names and
    shapes of other blocks, so that timm's two networks of them are told by what one lacks, and by
    the width of the other.
    """
    for name, first in arrays.items():
        second = arrays.get(name.removesuffix("fc1.weight") + "fc2.weight")
        if re.fullmatch(r"(.*\.)?blocks\.\d+\.mlp\.fc1\.weight", name) and second is not None:
            rows, columns = np.shape(first)[:1], np.shape(second)[1:]
            if rows and columns and rows[0] == 2 * columns[0]:
                return _GATED
    for above in (name[: -len(_QKV)] for name in arrays if name.endswith(_QKV)):
        lacking = not any(above + missing in arrays for missing in _NOT_IN_RPN)
        is_enormous = np.shape(arrays[above + _QKV])[1:] == (ENORMOUS,)
        is_plain_eva = f"{above}blocks.0.attn.q_bias" in arrays and not any(
            f"{above}blocks.0.{part}" in arrays
            for part in ("gamma_1", "attn.relative_position_bias_table")
        )
        if (lacking and f"{above}fc_norm.weight" in arrays) or (is_enormous and is_plain_eva):
            return _RES_POST
    return _named(arrays, UNREAD)


def _resnet(arrays: Mapping[str, Any]) -> str | None:
    """A ResNet by its blocks, and how its 3 × 3 convolutions differ from the plain one's."""
    matches = [re.fullmatch(r"((?:.*\.)?)layer([1-4])\.(\d+)\.conv2\.weight", n) for n in arrays]
    blocks_by_number = {(int(match[2]), int(match[3])): match for match in matches if match}
    if (1, 0) not in blocks_by_number:
        return None
    prefix = blocks_by_number[1, 0][1]
    depths = tuple(sum(stage == number for stage, _ in blocks_by_number) for number in range(1, 5))
    bottleneck = f"{prefix}layer1.0.conv3.weight" in arrays
    out_channels, in_channels = np.shape(arrays[blocks_by_number[1, 0][0]])[:2]
    blocks = f"{'bottleneck' if bottleneck else 'basic'} blocks {depths}"
    name = _RESNETS.get((bottleneck, depths))
    if in_channels < out_channels:
        return (
            f"a ResNeXt: a ResNet of {blocks} with {out_channels // in_channels} groups of channels"
        )
    if out_channels != _BASE_WIDTH:
        return (
            f"a wide ResNet: {blocks} with {out_channels} channels inside in place of {_BASE_WIDTH}"
        )
    return f"a ResNet of {blocks}" + (f", as {name} has" if name else "")
