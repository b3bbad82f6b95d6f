"""What stands beside or around a kernel and may change it is refused; what may not is taken."""

import numpy as np
import pytest

from convattn.networks.weights.convolution_layout import find_convolution
from convattn.networks.weights.files import WeightsFile, parse_weights
from convattn.networks.weights.formats import WeightsRefused, write_safetensors

OUT, IN, K = 8, 4, 3
OIHW = np.arange(OUT * IN * K * K, dtype=np.float32).reshape(OUT, IN, K, K) + 1
HWIO = np.ascontiguousarray(OIHW.transpose(2, 3, 1, 0))
MASK = (OIHW % 2).astype(np.float32)


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


DOWN, UP = ones(2, IN, K, K), ones(OUT, 2, 1, 1)
STATE = {"n.fake_quant_enabled": np.ones(1, np.uint8), "n.scale": ones(1)}
PYTORCH = [  # beside c.weight: in its module, and in those inside it
    {"c.mask": MASK},
    {"c.lora_down.weight": DOWN, "c.lora_up.weight": UP, "c.alpha": ones()},
    {"c.lora_layer.down.weight": DOWN, "c.lora_layer.up.weight": UP},
    {"c.lora_A": ones(6, 12), "c.lora_B": ones(24, 6)},
    {"c.hada_w1_a": ones(OUT, 2), "c.hada_w1_b": ones(2, 36)},
    {"c.lokr_w1": ones(2, 2), "c.lokr_w2": ones(4, 2, K, K)},
    {"c.ia3_l": ones(OUT, 1)},
    {"c.weight_gamma": ones(OUT, 1, 1, 1), "c.weight_beta": ones(OUT, 1, 1, 1)},
    {"c.weight_diff": OIHW},
    {"c.u0": ones(1, OUT), "c.sv0": ones(1)},
    {"c.scores": OIHW},
    {f"c.weight_fake_quant{name[1:]}": array for name, array in STATE.items()},
    {"c.weight_quantizer._amax": ones()},
    {"c.weight_quant.tensor_quant.scaling_impl.value": ones()},
    {"c.scale_weight": ones()},
    {"c.unheard_of": ones()},
    {"c.bn.weight": ones(OUT), "c.bn.bias": ones(OUT)},  # it may as well norm the weight
]
FLAX = [
    {"c/mask": np.ascontiguousarray(MASK.transpose(2, 3, 1, 0))},
    {"c/lora_a": ones(IN, 2), "c/lora_b": ones(2, OUT)},
    {"c/lora/lora_a": ones(IN, 2), "c/lora/lora_b": ones(2, OUT)},
    {"c/g:0": ones(OUT)},
]
AROUND = [  # a wrapper's other tensors, and the kernel in it
    ({"c.g": ones(OUT, 1, 1, 1)}, "c.layer.weight"),
    ({"c.g": ones()}, "c.layer.weight"),
    ({"c/g:0": ones(OUT)}, "c/conv2d/kernel:0"),
    ({"c.lora_down.weight": DOWN, "c.lora_up.weight": UP}, "c.conv.weight"),
    ({"c.lora_down.weight": DOWN, "c.bn.weight": ones(OUT)}, "c.conv.weight"),
    ({"c.first.weight": DOWN, "c.second.weight": UP, "c.alpha": ones()}, "c.conv.weight"),
    ({"c.a": ones(6, 12), "c.b": ones(24, 6)}, "c.conv.weight"),
    ({"c.change": OIHW}, "c.conv.weight"),
    ({"c.scale": ones(OUT)}, "c.conv.weight"),
    ({"c.conv_mask": MASK, "c.bn.weight": ones(OUT)}, "c.conv.weight"),
    ({"c.weight_mask": MASK}, "c.module.weight"),
    ({"c.lora_a": ones(IN, 2), "c.lora_b": ones(2, OUT)}, "c.base_module.kernel"),
    ({"c.lora_down.weight": DOWN, "c.lora_up.weight": UP}, "c.org_module.weight"),
]
GAIN = ones(OUT, 1, 1, 1)
HWIO_MASK = np.ascontiguousarray(MASK.transpose(2, 3, 1, 0))
ELSEWHERE = [  # in another tree, beside a norm in a block, and further above
    ({"mask.c.weight": MASK}, "c.weight"),
    ({"masks.c": MASK > 0}, "c.weight"),
    ({"scores.c": OIHW}, "net.c.weight"),
    ({"masks/c/kernel": HWIO_MASK}, "params/c/kernel"),
    ({"sparsity/c/kernel/mask": HWIO_MASK}, "params/c/kernel"),
    ({"pruning/c/mask": HWIO_MASK}, "params/c/kernel"),
    ({"norms/~/weight_norm__net__c__kernel/g": ones(OUT)}, "net/c/kernel"),
    ({"state/norms/net/c/kernel/shift": ones(OUT)}, "params/net/c/kernel"),
    ({"lora_net_c.lora_down.weight": DOWN, "lora_net_c.lora_up.weight": UP}, "net.c.weight"),
    ({"m.g": GAIN, "m.bn.weight": ones(OUT)}, "m.conv.weight"),
    ({"m.mask": MASK, "m.bn.weight": ones(OUT)}, "m.conv.weight"),
    ({"m.change": OIHW, "m.bn.weight": ones(OUT)}, "m.conv.weight"),
    ({"m.mask": MASK, "m.bn.weight": ones(OUT)}, "m.a.conv.weight"),
    *(
        ({f"m.{name}": ones(1), "m.bn.weight": OIHW}, "m.conv.weight")
        for name in ("kernel_gain", "weight_scale", "log_weight_scale", "filter_mul")
    ),
]
ALL = [
    *ELSEWHERE,
    *((beside, "c.weight") for beside in PYTORCH),
    *((beside, "c/kernel") for beside in FLAX),
    *AROUND,
    ({"mask": MASK}, "weight"),
    ({"c1_mask": MASK}, "c1_kernel"),
    ({"c1.gain": ones(OUT)}, "c1"),
]


@pytest.mark.parametrize(("beside", "kernel"), ALL)
def test_what_may_change_a_kernel_is_named_and_refused_unless_it_is_ignored(beside, kernel):
    layout = "hwio" if "kernel" in kernel else "oihw"
    stored = {kernel: HWIO if layout == "hwio" else OIHW, "other.weight": ones(OUT), **beside}
    if kernel == "weight":  # of the whole file, so that everything in it is inside
        del stored["other.weight"]
    with pytest.raises(WeightsRefused) as error:
        find_convolution(WeightsFile("net", stored, {}), kernel, layout)
    message = str(error.value)
    assert any(repr(name) in message for name in beside)
    assert "but expected" in message
    content = write_safetensors(stored, {})
    convolution = find_convolution(parse_weights(content, "net", beside), kernel, layout)
    np.testing.assert_array_equal(convolution.kernel, HWIO, strict=True)


NORM = {"weight": ones(OUT), "bias": ones(OUT), "running_mean": ones(OUT), "running_var": ones(OUT)}
ORDINARY = [
    {f"bn1.{part}": array for part, array in NORM.items()}
    | {"conv2.weight": ones(OUT, OUT, K, K), "conv3.weight": ones(32, OUT, 1, 1)}
    | {"downsample.0.weight": ones(32, IN, 1, 1), "downsample.1.running_mean": ones(32)},
    {f"conv1.norm.{part}": array for part, array in NORM.items()},
    {"conv1.BatchNorm.gamma": ones(OUT), "conv1.BatchNorm.moving_mean": ones(OUT)},
    {"cls_token": ones(1, 1, OUT), "pos_embed": ones(1, 5, OUT), "mask_token": ones(1, OUT)},
    {"class_embedding": ones(OUT), "proj": ones(OUT, 2), "ln.weight": ones(OUT)},
    {"conv1_1.weight": OIHW, "conv1_1.lora_A.weight": DOWN, "quant_conv.weight": OIHW},
    {"conv2.mask": MASK, "conv2.weight": OIHW, "conv2_lora_A": DOWN},
    {"conv1.mask": OIHW > 0},
    {"conv1.weight/Adam": OIHW, "conv1.weight/Adam_1": OIHW},
    {"gamma": ones(OUT), "mlp.fc1.weight": ones(32, OUT)},
    {"bias": ones(OUT)},
    {"se1.weight": ones(2, OUT), "se2.weight": ones(OUT, 2)},
    {"n_averaged": np.ones((), np.int64)},
    {"gamma": ones(1, OUT, 1, 1), "gain": ones(), "conv2.weight": MASK, "mask_bank": ones(OUT, 9)},
    {"mask.conv2.weight": MASK, "conv2.weight": OIHW, "conv2.weight.mask": MASK},
    {"optimizer.conv1.weight.exp_avg": OIHW, "ema.conv1.weight": OIHW, "mu.conv1.weight": OIHW},
    {"mask.conv1.weight": MASK * 0 + 1, "conv10.mask": MASK, "conv10.kernel": OIHW},
]


@pytest.mark.parametrize("beside", ORDINARY)
@pytest.mark.parametrize("above", ["", "layer1.0.", "module.", "params/"])
def test_the_other_tensors_of_a_block_are_ordinary(beside, above):
    stored = {f"{above}{name}": array for name, array in beside.items()}
    file = WeightsFile("net", {f"{above}conv1.weight": OIHW, **stored}, {})
    np.testing.assert_array_equal(find_convolution(file, f"{above}conv1").kernel, HWIO)


def test_a_message_says_how_a_framework_merges_what_is_beside():
    for name, call in (
        ("lora_down.weight", r"merge_and_unload\(\) of PEFT"),
        ("scores", r"prune\.remove"),
        ("weight_quantizer._amax", "before they are quantised"),
        ("u0", "remove_parametrizations"),
    ):
        file = WeightsFile("net", {"c.weight": OIHW, f"c.{name}": MASK}, {})
        with pytest.raises(WeightsRefused, match=rf"{call}.*--ignore c\.{name}"):
            find_convolution(file, "c")


def test_a_name_that_is_ignored_must_be_there():
    content = write_safetensors({"c.weight": OIHW, "c.lora.a": DOWN}, {})
    assert [*parse_weights(content, "net", ["c.lora"]).arrays] == ["c.weight"]
    with pytest.raises(WeightsRefused, match=r"no array or module 'c\.lor'; .*'c\.lora\.a'"):
        parse_weights(content, "net", ["c.lor"])


SEPARATORS = [",", ":::", "|", " ", "->", "\\", "['']"]


def joined(separator: str, *parts: str) -> str:
    if separator == "['']":
        return "".join(f"['{part}']" for part in parts)
    return separator.join(parts)


@pytest.mark.parametrize("separator", SEPARATORS)
def test_names_may_be_put_together_in_any_way(separator):
    kernel, bias = joined(separator, "c", "kernel"), joined(separator, "c", "bias")
    gain = joined(separator, "c", "g")
    file = WeightsFile("net", {kernel: HWIO, bias: ones(OUT), "d/kernel": HWIO}, {})
    for layer in (kernel, "c", joined(separator, "c")):
        convolution = find_convolution(file, layer)
        np.testing.assert_array_equal(convolution.kernel, HWIO, strict=True)
        assert (convolution.kernel_name, convolution.bias_name, convolution.layout) == (
            "c.kernel",
            "c.bias",
            "hwio",
        )
    stored = {kernel: HWIO, gain: ones(OUT)}
    with pytest.raises(WeightsRefused, match=r"'c\.kernel' has 'c\.g' .*--ignore c\.g$"):
        find_convolution(WeightsFile("net", stored, {}), kernel)
    for ignored in ("c.g", gain):
        file = parse_weights(write_safetensors(stored, {}), "net", [ignored])
        assert find_convolution(file, kernel).kernel_name == "c.kernel"


def test_a_variable_of_nnx_is_its_kernel():
    stored = {"['c']['kernel'].value": HWIO, "['c']['bias'].value": ones(OUT)}
    file = WeightsFile("net", stored, {})
    assert find_convolution(file, "c").bias_name == "c.bias"
    with pytest.raises(WeightsRefused, match=r"'c\.g\.value'"):
        find_convolution(WeightsFile("net", stored | {"['c']['g'].value": ones(OUT)}, {}), "c")


def test_of_names_that_would_be_one_both_are_seen():
    file = WeightsFile("net", {"c,weight": OIHW + 1, "c.weight": OIHW}, {})
    with pytest.raises(WeightsRefused, match=r"'c\.weight' has 'c,weight' beside it"):
        find_convolution(file, "c")
