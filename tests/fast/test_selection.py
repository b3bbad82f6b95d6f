"""Which back end a name or `"auto"` stands for: never one that refuses, and the cheapest."""

from functools import partial

import jax
import jax.numpy as jnp
import pytest
from comparison import assert_equal
from fast.layers import LAYER_BUCKETS, make_layer_case

import convattn as ca
from convattn.encodings import GaussianEncoding, QuadraticEncoding
from convattn.encodings.layer import AttentionLayer, ContentScores
from convattn.fast import selection
from convattn.fast.application import apply_attention, attention_maps
from convattn.fast.backend import Work
from convattn.fast.options import AttentionOptions, Dropout
from convattn.fast.selection import BACK_ENDS, cheapest, choose_backend
from convattn.operators.shifts import TokenGrid


def arguments(case):
    """What the choice looks at."""
    shape = (case.bucket.batch, *case.grid.queries, case.images.shape[-1])
    return case.layer, case.grid, shape


def choice(case, **options):
    return cheapest(*arguments(case), AttentionOptions(**options))


@pytest.mark.parametrize("bucket", LAYER_BUCKETS, ids=str)
@pytest.mark.quick(8)
def test_auto_takes_one_that_does_not_refuse(bucket):
    case = make_layer_case(bucket, 1)
    layer, grid, _ = arguments(case)
    for options in ({}, {"dropout": Dropout(0.5, jax.random.key(0))}, {"chunk": 2}):
        chosen = choice(case, **options)
        assert BACK_ENDS[chosen.name] is chosen
        assert chosen.refusal(layer, grid, AttentionOptions(**options)) is None


def test_auto_takes_the_least_expected_time(monkeypatch):
    """Priced by one count alone, then by its opposite."""
    case = make_layer_case(LAYER_BUCKETS[6], 1)
    layer, grid, shape = arguments(case)
    options = AttentionOptions()
    serving = {
        name: back_end.work(layer, grid, shape[0], shape[-1])
        for name, back_end in BACK_ENDS.items()
        if name != "windowed" and back_end.refusal(layer, grid, options) is None
    }
    assert len(serving) >= 3
    for sign in (1, -1):
        monkeypatch.setattr(selection, "seconds", lambda work, _, s=sign: s * work.exponentials)
        best = min(sign * work.exponentials for work in serving.values())
        assert sign * serving[choice(case).name].exponentials == best
    assert len({work.exponentials for work in serving.values()}) > 1


def test_windowed_only_where_windows_are_given(monkeypatch):
    """However cheap it is."""
    free = BACK_ENDS["windowed"]._replace(work=lambda *args: Work(-1.0, 0.0, 0.0, 0.0))
    monkeypatch.setitem(BACK_ENDS, "windowed", free)
    monkeypatch.setattr(selection, "seconds", lambda work, platform: work.products)
    case = make_layer_case(LAYER_BUCKETS[6], 1)
    window = ((-1, 1), (0, 2))
    assert choice(case).name != "windowed"
    assert choice(case, windows=(window,) * case.bucket.heads).name == "windowed"


@pytest.mark.parametrize("index", [6, 11])
def test_auto_chooses_under_tracing(index):
    """Parameters and images may be traced, and the choice is the same."""
    case = make_layer_case(LAYER_BUCKETS[index], 2)
    _, grid, shape = arguments(case)
    names = []

    @jax.jit
    def traced(layer, images):
        names.append(choose_backend("auto", layer, grid, shape, AttentionOptions()).name)
        return ca.apply_attention(layer, images)

    outputs = traced(case.layer, case.images)
    assert names == [choice(case).name]
    named = jax.jit(partial(ca.apply_attention, backend=names[0]))
    assert_equal(outputs, named(case.layer, case.images))


def test_a_name_stands_for_the_back_end_of_that_name():
    case = make_layer_case(LAYER_BUCKETS[6], 1)
    for name, back_end in BACK_ENDS.items():
        assert back_end.name == name
    for name in ("dense", "separable", "chunked"):
        assert choose_backend(name, *arguments(case), AttentionOptions()) is BACK_ENDS[name]


def test_a_refusal_says_which_back_end_and_why():
    layer, images = ca.conv_to_attention(jnp.ones((1, 1, 1, 1))), jnp.ones((1, 2, 2, 1))
    with pytest.raises(ValueError, match="'separable' cannot serve this layer: the scores of Bias"):
        ca.apply_attention(layer, images, backend="separable")


def test_auto_passes_over_whoever_would_hold_too_much(monkeypatch):
    skewed = GaussianEncoding(jnp.zeros((9, 2)), jnp.ones((9, 2, 2)))
    layer = AttentionLayer(skewed, None, jnp.ones((9, 4, 4)))
    grid = TokenGrid((224, 224), ((0, 0), (0, 0)))
    # Priced by its calls alone dense is always the cheapest.
    monkeypatch.setattr(selection, "seconds", lambda work, platform: work.calls)
    small = TokenGrid((16, 16), grid.ring)
    chosen = selection.choose_backend("auto", layer, grid, (1, 224, 224, 4), AttentionOptions())
    assert chosen.name == "chunked"
    chosen = selection.choose_backend("auto", layer, small, (1, 16, 16, 4), AttentionOptions())
    assert chosen.name == "dense"


@pytest.mark.parametrize(
    ("name", "has_content"), [("auto", True), *((name, False) for name in ("auto", *BACK_ENDS))]
)
@pytest.mark.quick(3)
def test_every_back_end_serves_a_layer_without_heads(name, has_content):
    """Zeros and the bias; for what no back end could refuse there, too."""
    encoding = QuadraticEncoding(jnp.zeros(0), jnp.zeros((0, 2)))
    content = ContentScores(*[jnp.zeros((0, 2, 3))] * 2) if has_content else None
    value, bias = jnp.zeros((0, 2, 5)), jnp.arange(5.0)
    layer = AttentionLayer(encoding, value, None, bias, content, ring=((1, 0), (0, 2)))
    images = jnp.ones((2, 3, 4, 2))
    dropping = {"dropout_rate": 0.5, "dropout_key": jax.random.key(0)}
    for options in ({}, dropping, {"chunk": 2}, {"windows": ()}):
        outputs = apply_attention(layer, images, backend=name, **options)
        assert_equal(outputs, jnp.broadcast_to(bias, (2, 3, 4, 5)))
    maps = attention_maps(layer, images)
    assert maps.weights.shape == ((2,) if has_content else ()) + (0, 3, 4, 4, 6)
    bare = AttentionLayer(encoding, value, None, None, content)
    assert_equal(apply_attention(bare, images, backend=name), jnp.zeros((2, 3, 4, 5)))
    with pytest.raises(ValueError, match="expected one of auto"):
        apply_attention(layer, images, backend="none")
