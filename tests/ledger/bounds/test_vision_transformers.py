"""The table of vision transformers: figures of the papers, and what follows from them."""

import pytest

from convattn.bounds.head_counts import HeadCount, HeadRange
from convattn_ledger.bounds.vision_transformers import (
    VISION_TRANSFORMERS,
    AttentionSize,
    HeadsRow,
    heads_table,
)

SIZES = {size.model: size for size in VISION_TRANSFORMERS}


@pytest.mark.parametrize(
    ("model", "patch", "heads", "embedding", "head_dim"),
    [
        ("ViT-Ti/16", 16, 3, 192, 64),
        ("ViT-S/16", 16, 6, 384, 64),
        ("ViT-S/32", 32, 6, 384, 64),
        ("ViT-B/16", 16, 12, 768, 64),
        ("ViT-B/32", 32, 12, 768, 64),
        ("ViT-L/16", 16, 16, 1024, 64),
        ("ViT-L/32", 32, 16, 1024, 64),
        ("ViT-H/14", 14, 16, 1280, 80),
        ("DeiT-Ti", 16, 3, 192, 64),
        ("DeiT-S", 16, 6, 384, 64),
        ("DeiT-B", 16, 12, 768, 64),
        ("Swin-T stage 1", 4, 3, 96, 32),
        ("Swin-T stage 4", 32, 24, 768, 32),
        ("Swin-B stage 3", 16, 16, 512, 32),
        ("Swin-L stage 4", 32, 48, 1536, 32),
    ],
)
def test_figures_of_the_papers(model, patch, heads, embedding, head_dim):
    size = SIZES[model]
    assert (size.patch_size, size.heads, size.embedding) == (patch, heads, embedding)
    assert size.head_dim == head_dim
    assert size.head_dim * size.heads == size.embedding


def test_every_size_has_its_source_and_swin_its_windows():
    assert len(SIZES) == len(VISION_TRANSFORMERS)
    for size in VISION_TRANSFORMERS:
        assert "Table" in size.source
        assert (size.window == 7) == size.model.startswith("Swin")
        assert size.embedding % size.heads == 0


def test_what_a_base_model_lacks():
    rows = {(row.size.model, row.kernel_size): row for row in heads_table()}
    assert len(rows) == 3 * len(VISION_TRANSFORMERS)
    base = rows["ViT-B/16", 3]
    assert (base.limit.necessary, base.limit.sufficient) == (12, 16)
    assert (base.bounded, base.bounded_sufficient) == (20, 20)
    assert (base.exact.necessary, base.exact.sufficient) == (24, 28)
    assert rows["ViT-L/16", 3].enough == "growing"  # sixteen heads
    assert base.enough == "bounded: no"
    assert rows["ViT-S/16", 3].enough == "no"  # six heads, and tokens narrower than a patch
    assert rows["Swin-T stage 1", 3].enough == "no"
    huge = rows["ViT-H/14", 3]
    assert (huge.limit.sufficient, huge.bounded_sufficient) == (10, 16)
    assert huge.enough == "limit"
    assert rows["ViT-H/14", 5].enough == "growing"
    assert rows["ViT-H/14", 7].enough == "open"
    assert not SIZES["ViT-S/16"].holds_patch
    assert SIZES["ViT-B/16"].holds_patch
    assert (rows["Swin-T stage 1", 3].limit.necessary, rows["Swin-T stage 1", 3].bounded) == (9, 10)


@pytest.mark.parametrize(
    ("heads", "bounded", "enough"),
    [
        (2, 5, "no"),
        (3, 5, "bounded: no"),
        (5, 5, "open"),
        (5, None, "open"),
        (6, 5, "growing"),
        (8, 5, "growing"),
        (9, 5, "limit"),
        (11, 5, "limit"),
        (12, 5, "exactly"),
    ],
)
def test_what_the_heads_are_enough_for(heads, bounded, enough):
    """Three are necessary, six suffice, nine with bounded maps, and twelve exactly."""
    size = AttentionSize("some", 1, heads, 64 * heads, "a table")
    limit = HeadRange(
        HeadCount(3),
        HeadCount(6),
        bounded=bounded and HeadCount(bounded),
        bounded_sufficient=HeadCount(9),
    )
    row = HeadsRow(size, 3, limit, HeadRange(HeadCount(7), HeadCount(12)))
    assert row.enough == enough
    assert row.bounded == (bounded or 3)
    document = row.as_dict()
    assert document["enough"] == enough
    for name in ("patch_size", "heads", "embedding", "head_dim", "window", "source", "model"):
        assert document[name] == getattr(size, name)
    assert (document["limit"], document["exact"]) == (limit.as_dict(), row.exact.as_dict())
    assert (document["kernel_size"], document["holds_patch"]) == (3, True)


def test_a_token_that_does_not_hold_its_patch_has_not_enough_whatever_its_heads(monkeypatch):
    sizes = (AttentionSize("wide", 4, 60, 3840, "a"), AttentionSize("narrow", 16, 60, 120, "a"))
    monkeypatch.setattr("convattn_ledger.bounds.vision_transformers.VISION_TRANSFORMERS", sizes)
    assert [row.enough for row in heads_table((3,))] == ["exactly", "no"]


def test_refusals():
    with pytest.raises(ValueError, match="kernel_size=0"):
        heads_table((0,))
