import numpy as np
import pytest
import torch

import convattn as ca
from convattn.torch import to_multihead_attention

CASES = [
    ((3, 3, 2, 4), (5, 6), {}),
    ((3, 5, 4, 2), (5, 6), {"stride": 2}),
    ((3, 3, 3, 2), (6, 8), {"patch_size": 2}),
    ((3, 3, 3, 2), (8, 12), {"patch_size": 4, "stride": 2}),
    ((5, 2, 3), (9,), {}),
    ((1, 1, 2, 3), (4, 5), {}),
    ((3, 3, 2, 4), (5, 6), {"dilation": 2}),
    ((3, 3, 8, 9), (5, 6), {"head_dim": 4}),
]


@pytest.mark.parametrize(("shape", "size", "options"), CASES)
@pytest.mark.parametrize("form", ["exact", "limit"])
def test_the_zero_key_is_the_zero_padding(shape, size, options, form) -> None:
    numbers = np.random.default_rng(0)
    kernel, bias = numbers.normal(size=shape), numbers.normal(size=shape[-1])
    options = {**options, "padding": "SAME_TORCH"}  # a ring of zero tokens at strides too
    layer = ca.conv_to_attention(kernel, bias, form=form, **options)
    images = numbers.normal(size=(2, *size, shape[-2]))
    own = {name: value for name, value in options.items() if name not in ("head_dim", "patch_size")}
    expected = np.moveaxis(np.asarray(ca.conv(images, kernel, bias, **own)), -1, 1)
    module = to_multihead_attention(layer, size)
    assert type(module.attention) is torch.nn.MultiheadAttention
    assert module.attention.add_zero_attn == (shape[0] > 1)
    tokens = module.mask.shape[-1]
    assert module.mask.shape == (layer.heads, tokens, tokens)
    with torch.no_grad():
        outputs = module(torch.from_numpy(np.moveaxis(images, -1, 1))).numpy()
    assert outputs.shape == expected.shape
    # in the limit form attention is one-hot up to rounding as well
    assert abs(outputs - expected).max() <= 1e-13 * abs(expected).max()


def test_without_the_zero_key_the_border_is_wrong() -> None:
    kernel = np.ones((3, 3, 1, 1))
    module = to_multihead_attention(ca.conv_to_attention(kernel), (4, 5))
    images = torch.ones(1, 1, 4, 5, dtype=torch.float64)
    right = module(images)
    module.attention.add_zero_attn = False
    assert (module(images) - right).abs().max() > 1
    assert right[0, 0, 0].round(decimals=9).tolist() == [4, 6, 6, 6, 4]


def test_it_moves_and_trains_and_is_saved() -> None:
    layer = ca.conv_to_attention(np.ones((3, 3, 2, 3), np.float32))
    module, other = (to_multihead_attention(layer, (4, 5)) for _ in range(2))
    images = torch.randn(2, 2, 4, 5)
    with torch.no_grad():
        module.mask += 1
    other.load_state_dict(module.state_dict(), strict=True)
    assert torch.equal(other(images), module(images))
    module.double()(images.double()).sum().backward()
    assert module.attention.in_proj_weight.grad.abs().max() > 0


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: (ca.conv_to_attention(np.ones((3, 3, 1, 1))), 200), "40000 tokens"),
        (lambda: (ca.conv_to_attention(np.ones((3, 3, 1, 1)), patch_size=2), 5), "should divide"),
        (
            lambda: (ca.conv_to_attention(np.ones((5, 5, 512, 512), np.float32)), 8),
            "embed_dim=13312.*head_dim",
        ),
        (lambda: (ca.conv_to_attention(np.ones((3, 3, 1, 1)), padding="REFLECT"), 8), "reflect"),
    ],
)
def test_what_it_refuses(make, match) -> None:
    with pytest.raises(ValueError, match=match):
        to_multihead_attention(*make())


def test_channels_of_a_grouped_convolution_are_not_taken_for_those_of_all() -> None:
    kernel = np.ones((3, 3, 2, 4))
    module = to_multihead_attention(ca.conv_to_attention(kernel), 5)
    with pytest.raises(ValueError, match=r"2 channels and \(5, 5\) pixels.* each group"):
        module(torch.ones(1, 4, 5, 5, dtype=torch.float64))


def test_images_of_another_size_are_refused() -> None:
    module = to_multihead_attention(ca.conv_to_attention(np.ones((3, 3, 1, 1))), (4, 5))
    with pytest.raises(ValueError, match=r"\(4, 5\) pixels"):
        module(torch.ones(1, 1, 5, 4))
