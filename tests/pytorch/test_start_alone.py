"""The start in forty lines of docs/initialization.md, beside `convolutional`."""

import re
from pathlib import Path

import pytest
from torch_packages import torch_package

from convattn.initialization import convolutional
from convattn.initialization.positions import targets

torch = pytest.importorskip("torch")
PAGE = Path(__file__).parents[2] / "docs" / "initialization.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
GRID, LEAK = (6, 8), 0.05
INSIDE = [row * 8 + column for row in range(1, 5) for column in range(1, 7)]


@pytest.fixture(scope="module")
def names():
    """What the block of the page defines."""
    defined: dict = {}
    exec(next(block for block in BLOCKS if "def start_as_convolution" in block), defined)
    return defined


@pytest.fixture(scope="module")
def snippet(names):
    return names["start_as_convolution"]


def test_the_example_prints_what_the_page_says(names, capsys):
    torch_package("timm")
    example = next(block for block in BLOCKS if "\nstart_as_convolution(" in block)
    exec(example, dict(names))
    printed = capsys.readouterr().out.strip()
    assert printed.startswith("[(")
    assert example.endswith(f"  # {printed}\n")


@pytest.mark.parametrize("heads", [9, 12])
def test_every_head_copies_a_neighbour(snippet, heads):
    """Also where 64 channels are not a multiple of a head's."""
    images, vit = torch.rand(4, 3, 24, 32) * 2 - 1, network(True, heads)
    snippet(vit, images, leak=LEAK)
    weights = attention(vit, images)["weights"]
    assert largest_leak(weights, "class", 1, range(GRID[0] * GRID[1])) <= LEAK


def test_heads_that_are_too_narrow_are_refused(snippet):
    with pytest.raises(AssertionError, match="heads of 4 features, but expected at least 5"):
        snippet(network(True, 18), torch.rand(1, 3, 24, 32))


def network(class_token, heads=3):
    timm = torch_package("timm")[1]
    torch.manual_seed(0)
    sides = {"img_size": (24, 32), "patch_size": 4, "embed_dim": 72, "depth": 2, "num_heads": heads}
    pool = "token" if class_token else "avg"
    return timm.models.VisionTransformer(
        **sides, num_classes=4, class_token=class_token, global_pool=pool
    ).eval()


def attention(vit, images):
    """Of the first layer `[batch, heads, tokens, tokens]`, and what its branch adds."""
    activations, block = {}, vit.blocks[0]
    block.attn.fused_attn = False
    hooks = [
        block.attn.attn_drop.register_forward_hook(lambda m, i, o: activations.update(weights=o)),
        block.attn.register_forward_hook(lambda m, i, o: activations.update(read=i[0], branch=o)),
    ]
    with torch.no_grad():
        vit(images)
    for hook in hooks:
        hook.remove()
    return activations


def shift_of(weights, before):
    """(row, column) that a head looks at from the middle of the grid."""
    query = 3 * GRID[1] + 3
    key = int(weights[before + query].argmax()) - before
    return key // GRID[1] - 3, key % GRID[1] - 3


def largest_leak(weights, border, before, queries):
    """Of all heads and these queries, to other tokens than the one of the head's shift."""
    leak = 0.0
    for head in range(weights.shape[1]):
        meant = targets(GRID, border, shift_of(weights[0, head], before), before)
        for query in queries:
            share = weights[:, head, before + query, int(meant[query])]
            leak = max(leak, float(1 - share.min()))
    return leak


@pytest.mark.parametrize("class_token", [True, False])
def test_its_heads_are_one_hot_within_the_leak_as_ours_are(snippet, class_token):
    images = torch.rand(4, 3, 24, 32) * 2 - 1
    border, before = ("class", 1) if class_token else ("edge", 0)
    every = range(GRID[0] * GRID[1]) if class_token else INSIDE
    usual = network(class_token)
    initialization = convolutional(usual.state_dict(), heads=3, image_size=(24, 32), leak=LEAK)
    assert initialization.border == border
    ours = {name: torch.from_numpy(array) for name, array in initialization.parameters.items()}
    usual.load_state_dict(ours)
    theirs = network(class_token)
    snippet(theirs, images, leak=LEAK)
    for vit in (usual, theirs):
        weights = attention(vit, images)["weights"]
        assert 0 < largest_leak(weights, border, before, every) <= LEAK
    edges = attention(theirs, images)["weights"]
    assert largest_leak(edges, border, before, range(GRID[0] * GRID[1])) < 0.5  # nearest token


@pytest.mark.parametrize("class_token", [True, False])
def test_its_branch_is_the_shift_of_its_channels(snippet, class_token):
    images, vit = torch.rand(4, 3, 24, 32) * 2 - 1, network(class_token)
    snippet(vit, images, leak=LEAK)
    activations, before = attention(vit, images), int(class_token)
    read, branch = (
        activations[name][:, before:].reshape(4, *GRID, 72) for name in ("read", "branch")
    )
    largest = float(activations["read"][..., :64].norm(dim=-1).max())
    for head in range(3):
        own = slice(24 * head, min(24 * head + 24, 64))
        rows, columns = shift_of(activations["weights"][0, head], before)
        moved = torch.roll(read[..., own], (-rows, -columns), (1, 2))[:, 1:5, 1:7]
        distance = (branch[:, 1:5, 1:7, own] - moved).norm(dim=-1).max()
        assert float(distance) <= 2 * LEAK * largest
    assert not branch[..., 64:].any()


def test_a_broken_start_is_seen(snippet):
    images, vit = torch.rand(4, 3, 24, 32) * 2 - 1, network(True)
    snippet(vit, images, leak=LEAK)
    with torch.no_grad():
        vit.blocks[0].attn.qkv.weight[:48] /= 4  # scores of a quarter of the size
    weights = attention(vit, images)["weights"]
    assert largest_leak(weights, "class", 1, range(GRID[0] * GRID[1])) > LEAK
