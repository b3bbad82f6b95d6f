"""What stands in another tree belongs to the kernel that it is nearest to by name."""

import numpy as np
import pytest

from convattn.networks.weights.other_trees import in_another_tree

KERNEL = np.arange(8 * 4 * 9, dtype=np.float32).reshape(8, 4, 3, 3) + 1
MASK = (KERNEL % 2).astype(np.float32)


@pytest.mark.parametrize(("tree", "array"), [("masks", MASK), ("scores", KERNEL), ("s/p", MASK)])
def test_each_mask_is_of_the_nearest_kernel(tree, array):
    kernels = ["params/a/conv/kernel", "params/b/conv/kernel", "params/b/conv_1/kernel"]
    masks = [name.replace("params", tree) for name in kernels]
    stored = dict.fromkeys(kernels, KERNEL) | dict.fromkeys(masks, array)
    for kernel, mask in zip(kernels, masks, strict=True):
        others = {name: array for name, array in stored.items() if name != kernel}
        assert [*in_another_tree(kernel, KERNEL, others)] == [mask]


@pytest.mark.parametrize(
    ("name", "array"),
    [
        ("masks/conv/kernel", np.ones_like(KERNEL)),
        ("params/dirac/kernel", MASK),
        ("opt/mu/conv/kernel", KERNEL),
        ("opt/conv/kernel/v_row", KERNEL[0]),
        ("ema_params_tree/conv__kernel/average", KERNEL),
        ("params/mask_conv/kernel", KERNEL),
        ("params/mask/0/kernel", KERNEL),
        ("mask_token", np.ones((1, 1, 8), np.float32)),
        ("lora/dense/a", np.ones((4, 2), np.float32)),
    ],
)
def test_what_changes_nothing_of_the_kernel_is_ordinary(name, array):
    assert not [*in_another_tree("params/conv/kernel", KERNEL, {name: array})]


def test_a_mask_of_a_kernel_that_is_multiplied_by_it_changes_nothing():
    others = {"masks/conv/kernel": MASK}
    assert not [*in_another_tree("params/conv/kernel", KERNEL * MASK, others)]
    assert [*in_another_tree("params/conv/kernel", KERNEL, others)]
