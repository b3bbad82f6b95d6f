"""Any model with `nnx.Conv`s, its convolutions replaced by attention, and back."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from comparison import assert_equal, assert_within
from flax import nnx

from convattn.data.cifar10_slice import load_cifar10_slice
from convattn.nnx import AttentionConv, surgery, to_attention, to_convolution


class Network(nnx.Module):
    """Strides, batch norm, a shared depthwise layer, a list, a dictionary, max pooling."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        self.stem = nnx.Conv(3, 4, (3, 3), strides=2, rngs=rngs)
        self.norm = nnx.BatchNorm(4, rngs=rngs)
        self.blocks = nnx.List([nnx.Conv(4, 4, (3, 3), feature_group_count=4, rngs=rngs)])
        self.again = self.blocks[0]
        last = nnx.Conv(4, 6, (2, 2), padding="VALID", use_bias=False, rngs=rngs)
        self.more = nnx.Dict(last=last)
        self.head = nnx.Linear(6, 10, rngs=rngs)

    def __call__(self, images: jax.Array) -> jax.Array:
        features = nnx.relu(self.norm(self.stem(images)))
        features = nnx.max_pool(features, (2, 2), (2, 2))
        features = self.again(nnx.relu(self.blocks[0](features)))
        return self.head(self.more["last"](features).mean((1, 2)))


@pytest.fixture(scope="module")
def network() -> Network:
    model = Network(nnx.Rngs(0))
    model.eval()
    return model


IMAGES = jax.random.normal(jax.random.key(0), (2, 16, 13, 3), jnp.float32)


def ones(*shape: int) -> jax.Array:
    """In the dtype of Flax's parameters."""
    return jnp.ones(shape, jnp.float32)


# One shape for all tests that need no network: JAX compiles each shape anew.
CONV = nnx.Conv(2, 2, (3,), rngs=nnx.Rngs(0))
LINE = ones(1, 5, 2)


class Holder(nnx.Module):
    """A model with one module, held as it is given, and called or not."""

    def __init__(self, held, called=False) -> None:
        self.held, self.called = held, called

    def __call__(self, images):
        return self.held(images) if self.called else images


@pytest.fixture(scope="module")
def converted(network):
    return to_attention(network, IMAGES)


def test_the_logits_are_the_same_and_the_model_is_left_alone(network, converted):
    model, report = converted
    assert isinstance(network.stem, nnx.Conv)
    assert isinstance(model.stem, AttentionConv)
    difference = float(jnp.abs(model(IMAGES) - network(IMAGES)).max())
    assert difference == report.difference < 1e-5 * report.largest
    assert report.same_class


def test_every_layer_is_within_its_bound(converted):
    layers = {layer.path: layer for layer in converted.report.layers}
    assert [*layers] == ["again", "blocks.0", "more.last", "stem"]
    assert (layers["stem"].heads, layers["again"].groups, layers["more.last"].heads) == (10, 4, 5)
    for layer in layers.values():
        assert layer.difference is not None
        assert layer.bound is not None
        assert 0 <= layer.difference <= layer.bound < 0.01


def test_a_wrong_kernel_leaves_the_bound(network, monkeypatch):
    right = AttentionConv.from_conv

    def turned(conv, **options):
        changed = nnx.clone(conv)
        changed.kernel[...] = conv.kernel[...][::-1]
        return right(changed, **options)

    monkeypatch.setattr(surgery.AttentionConv, "from_conv", turned)
    _, report = to_attention(network, IMAGES)
    stem = next(layer for layer in report.layers if layer.path == "stem")
    assert stem.difference > stem.bound
    assert stem.passed is report.passed is False
    assert str(report).count("FAILED") >= 2
    assert report.difference > 1e-3


def test_a_shared_module_is_taken_by_all_of_its_paths_or_by_none():
    twice = nnx.Dict(a=nnx.clone(CONV))
    twice.b = twice.a
    model = Holder(twice)
    with pytest.raises(ValueError, match=r"b and held\.a are one module, of which `where`"):
        to_attention(model, LINE, where=lambda path, conv: path == "held.a")
    attention = to_attention(model, LINE).model.held
    assert attention.a is attention.b


def test_the_report_is_a_table(converted):
    lines = str(converted.report).splitlines()
    assert len(lines) == 5
    assert "again" in lines[0]
    assert "10 heads × 4 groups" in lines[0]
    assert lines[-1].endswith("the same classes")


@pytest.mark.slow
def test_it_goes_back(network, converted):
    back, report = to_convolution(converted.model, IMAGES)
    assert [layer.path for layer in report.layers] == ["again", "blocks.0", "more.last", "stem"]
    assert max(layer.distance for layer in report.layers) < 1e-5
    assert all(layer.uniform == 0 for layer in report.layers)
    assert report.difference < 1e-5 * report.largest
    assert report.same_class
    assert type(back.stem) is nnx.Conv
    assert back.again is back.blocks[0]
    assert float(jnp.abs(back(IMAGES) - network(IMAGES)).max()) < 1e-5
    limit = to_convolution(to_attention(network, IMAGES, form="limit").model).model
    assert_equal(limit.stem.kernel[...], network.stem.kernel[...])


def test_where_says_which(network):
    model, report = to_attention(network, IMAGES, where=lambda path, conv: conv.strides == 2)
    assert [layer.path for layer in report.layers] == ["stem"]
    assert isinstance(model.blocks[0], nnx.Conv)


def test_in_training_mode_the_batch_statistics_stay(network):
    training = nnx.clone(network)
    training.train()
    before = training.norm.mean[...]
    converted, _ = to_attention(training, IMAGES)
    assert_equal(training.norm.mean[...], before)
    assert_equal(converted.norm.mean[...], before)


@pytest.mark.slow
def test_a_model_trained_on_images_goes_on_as_attention():
    train, test = load_cifar10_slice("train"), load_cifar10_slice("test")

    def scaled(images):
        return jnp.asarray(images, jnp.float32) / 128 - 1

    images, labels = scaled(train.images[:128]), jnp.asarray(train.labels[:128], jnp.int32)

    @nnx.jit
    def step(model, optimizer):
        def loss(model):
            logits = model(images)
            return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

        value, gradient = nnx.value_and_grad(loss)(model)
        optimizer.update(model, gradient)
        return value

    def train_steps(model, rate):
        model.train()
        optimizer = nnx.Optimizer(model, optax.rmsprop(rate), wrt=nnx.Param)
        losses = [float(step(model, optimizer)) for _ in range(10)]
        model.eval()
        return losses

    def accuracy(model):
        return float((np.asarray(model(scaled(test.images))).argmax(-1) == test.labels).mean())

    convolutions = Network(nnx.Rngs(0))
    train_steps(convolutions, 0.01)
    model, report = to_attention(convolutions, scaled(test.images[:8]))
    assert accuracy(model) == accuracy(convolutions) > 0.1
    assert all(layer.difference <= layer.bound for layer in report.layers)
    before = jax.tree.map(jnp.copy, nnx.state(model, nnx.Param))
    losses = train_steps(model, 0.001)
    assert losses[-1] < losses[0]
    moved = jax.tree.map(lambda a, b: bool((a != b).any()), before, nnx.state(model, nnx.Param))
    assert all(jax.tree.leaves(moved)), moved


class Scaled(nnx.Module):
    """Calls its convolution twice, and takes a keyword argument."""

    def __init__(self) -> None:
        self.conv = nnx.clone(CONV)

    def __call__(self, images, *, scale):
        outputs = self.conv(scale * self.conv(images))
        return {"outputs": outputs, "sign": outputs > 0, "name": "one"}


@pytest.mark.parametrize(
    "as_output",
    [
        lambda x: jax.lax.complex(jnp.ones_like(x), x),
        lambda x: np.float32(x.sum()),
        lambda x: np.bool_(jnp.abs(x).max() > 1.5 * jnp.abs(CONV(LINE)).max()),
    ],
)
@pytest.mark.quick(1)
def test_imaginary_parts_and_single_numbers_count(as_output):
    class Other(Scaled):
        def __call__(self, images):
            outputs = self.conv(images) * (3 if isinstance(self.conv, AttentionConv) else 1)
            return jnp.zeros(2), as_output(outputs)

    _, report = to_attention(Other(), LINE)
    assert report.difference > 0.5


@pytest.mark.parametrize(
    "as_output", [lambda x: frozenset([float(x.sum())]), lambda x: x.shape.__iter__()]
)
def test_outputs_that_cannot_be_compared_are_refused(as_output):
    class Other(Scaled):
        def __call__(self, images):
            return images, as_output(self.conv(images))

    with pytest.raises(
        ValueError, match=r"the model gives a \w+ on the example, which is not comp"
    ):
        to_attention(Other(), LINE)


@pytest.mark.slow
def test_a_model_that_asks_for_the_type_of_its_layers_is_compared_as_it_is():
    class Asking(nnx.Module):
        def __init__(self, kind):
            self.kind, self.conv = kind, nnx.clone(CONV)

        def __call__(self, images):
            return self.conv(images) + 10 * (type(self.conv) is self.kind)

    model, report = to_attention(Asking(nnx.Conv), LINE)
    assert report.difference > 9
    model.kind = AttentionConv
    assert to_convolution(model, LINE).report.difference > 9


def test_the_report_covers_every_call_and_calls_may_have_keywords():
    _, report = to_attention(Scaled(), LINE, call=lambda model, x: model(x, scale=1e3))
    layer = report.layers[0]
    assert layer.largest == pytest.approx(float(jnp.abs(CONV(1e3 * CONV(LINE))).max()))
    assert 0 <= layer.difference <= layer.bound < 1
    assert report.difference < 1


def test_what_is_not_a_number_is_not_hidden():
    class Broken(Scaled):
        def __call__(self, images):
            outputs = self.conv(images)
            return outputs, outputs * (jnp.nan if isinstance(self.conv, AttentionConv) else 1)

    _, report = to_attention(Broken(), LINE)
    assert np.isnan(report.difference)


@pytest.mark.slow
def test_what_is_not_a_number_in_one_step_or_call_is_not_hidden():
    layer = AttentionConv.from_conv(stacked(0))
    layer.output[...] = layer.output[...].at[1].set(jnp.nan)
    assert np.isnan(layer.to_conv().distance)
    attention = AttentionConv.from_conv(CONV)
    _, report = to_convolution(
        attention, LINE, call=lambda model, x: (model(x), model(x * jnp.nan))[0]
    )
    assert np.isnan(report.layers[0].distance)


@pytest.mark.parametrize("where", [None, lambda path, _: path == "held.0"])
def test_parameters_that_are_shared_are_refused(where):
    model = Holder(nnx.data([nnx.clone(CONV), nnx.clone(CONV)]))
    model.held[1].kernel = model.held[0].kernel
    with pytest.raises(ValueError, match=r"held\.[01]\.kernel is also held\.[01]\.kernel"):
        to_attention(model, LINE, where=where)


class Pair(nnx.Pytree):
    def __init__(self, first) -> None:
        self.first = first


@pytest.mark.parametrize(
    ("name", "held_by", "path"),
    [
        ("kernel", lambda x: x, "tied"),
        ("bias", lambda x: x, "tied"),
        ("kernel", lambda x: nnx.data((x,)), "tied.0"),
        ("kernel", Pair, "tied.first"),
        ("kernel", lambda x: nnx.data(nnx.State({"first": x})), "tied.first"),
    ],
)
def test_parameters_that_anything_else_in_the_model_holds_are_refused(name, held_by, path):
    model = Holder(nnx.clone(CONV))
    model.tied = held_by(getattr(model.held, name))
    with pytest.raises(ValueError, match=rf"{path} is also held\.{name}, but expected a parameter"):
        to_attention(model, LINE)


def test_what_a_pytree_of_flax_holds_is_replaced():
    model = Holder(Pair(nnx.clone(CONV)))
    assert isinstance(to_attention(model, LINE).model.held.first, AttentionConv)


class Scanned(nnx.Module):
    """Three layers, whose parameters are stacked, one after the other."""

    def __init__(self) -> None:
        @nnx.split_rngs(splits=3)
        @nnx.vmap
        def build(rngs):
            return nnx.Conv(2, 2, (3,), rngs=rngs)

        self.convs = build(nnx.Rngs(0))

    def __call__(self, images):
        @nnx.scan(in_axes=(0, nnx.Carry), out_axes=nnx.Carry)
        def applied(conv, images):
            return nnx.tanh(conv(images))

        return applied(self.convs, images)


@pytest.mark.slow
def test_the_layers_of_a_scan_are_converted_and_go_back():
    model, images = Scanned(), jnp.arange(12, dtype=jnp.float32).reshape(1, 6, 2)
    attention, report = to_attention(model, images)
    assert attention.convs.output[...].shape == (3, 4, 2, 2)
    assert (report.layers[0].heads, report.left) == (4, ())
    # values of tanh, whose three layers of six products less than double what each rounds
    assert report.difference < 2.0**-18
    back, recovered = to_convolution(attention, images)
    assert recovered.layers[0].distance < 2.0**-18
    assert jnp.allclose(back.convs.kernel[...], model.convs.kernel[...], atol=2.0**-20)
    moved = nnx.clone(attention)
    moved.convs.output[...] = moved.convs.output[...].at[1].multiply(2)
    assert jnp.abs(moved(images) - model(images)).max() > 0.01


def stacked(axis, bias=True, **metadata):
    """Three layers of three taps, stacked."""

    @nnx.split_rngs(splits=3)
    @nnx.vmap(out_axes=axis)
    def build(rngs):
        return nnx.Conv(2, 2, (3,), use_bias=bias, rngs=rngs, kernel_metadata=metadata)

    return build(nnx.Rngs(0))


@pytest.mark.slow
def test_the_axis_that_layers_are_stacked_on_is_not_guessed():
    assert AttentionConv.from_conv(stacked(0)).output[...].shape == (3, 4, 2, 2)
    named = stacked(0, bias=False, stack_axis=0)
    assert AttentionConv.from_conv(named).output[...].shape == (3, 4, 2, 2)
    for conv in (stacked(1), stacked(1, bias=False), stacked(0, bias=False)):
        assert conv.kernel[...].shape == (3, 3, 2, 2)
        with pytest.raises(
            ValueError, match=r"\(3, 3, 2, 2\) .*set_metadata\(stack_axis=0\), else"
        ):
            AttentionConv.from_conv(conv)
    with pytest.raises(ValueError, match="stack_axis=1, but expected 0"):
        AttentionConv.from_conv(stacked(1, stack_axis=1))


def scanned():
    """Three layers that are stacked on the last axis."""
    conv = nnx.Conv(2, 2, (3,), rngs=nnx.Rngs(0))
    conv.kernel = nnx.Param(jnp.stack([conv.kernel[...]] * 3, axis=-1))
    return conv


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Holder(nnx.Linear(2, 2, rngs=nnx.Rngs(0))), "model=Holder holds no nnx.Conv; it may call"),
        (Holder(nnx.ConvTranspose(2, 2, (3,), rngs=nnx.Rngs(0))), "held: conv=ConvTranspose"),
        (Holder(nnx.Conv(2, 2, (3, 3, 3), rngs=nnx.Rngs(0))), "held: .*3 axes"),
        (
            Holder(nnx.Conv(2, 2, (3,), padding=2, rngs=nnx.Rngs(0))),
            r"held: padding=\(\(2, 2\),\).* makes more",
        ),
        (Holder(scanned()), r"held: conv.kernel.shape=\(3, 2, 2, 3\).*stack them on the first"),
        (Network, "model=Network is a class.*call the class"),
        (Holder(nnx.data((CONV, CONV))), "held.0 is held by something else than a module"),
    ],
)
def test_what_cannot_be_converted_is_named(model, message):
    with pytest.raises(ValueError, match=message):
        to_attention(model, LINE)


@pytest.mark.parametrize("called", [True, False])
@pytest.mark.parametrize("kind", [nnx.WeightNorm, nnx.SpectralNorm])
def test_wrappers_that_compute_a_kernel_are_refused_by_name(kind, called):
    wrapper = kind(nnx.clone(CONV), rngs=nnx.Rngs(0))
    message = rf"held\.layer_instance: nnx\.{kind.__name__} computes its kernel at each call"
    with pytest.raises(ValueError, match=message):
        to_attention(Holder(wrapper, called), LINE)


class Rewriting(nnx.Module):
    """Puts another kernel into its convolution at each call."""

    def __init__(self, compute, kernel) -> None:
        self.conv, self.compute = nnx.clone(CONV), compute
        self.conv.kernel[...] = kernel
        self.direction = nnx.Param(kernel)

    def __call__(self, images):
        self.conv.kernel[...] = self.compute(self.conv.kernel[...], self.direction[...])
        return self.conv(images)


class Computing(nnx.Module):
    """Calls a copy of its convolution whose kernel is computed, as fake quantisation does."""

    def __init__(self, compute, gain) -> None:
        self.conv, self.compute, self.gain = nnx.clone(CONV), compute, gain
        self.conv.kernel[...] = jnp.round(256 * CONV.kernel[...]) / 256

    def __call__(self, images):
        graph, state = nnx.split(self.conv)
        kernels = jax.tree.map(lambda p: self.compute(p, self.gain[...]), state)
        return nnx.merge(graph, kernels)(images)


def alternating(p, gain):
    return p * (gain[::2].sum() - gain[1::2].sum() + 1)


KERNEL = CONV.kernel[...]
COMPUTED = {
    "rewritten": lambda: Rewriting(lambda p, _: p / 2, KERNEL),
    "projected, which it is already": lambda: Rewriting(
        lambda p, _: jnp.maximum(p, 0), jnp.abs(KERNEL)
    ),
    "standardised": lambda: Rewriting(lambda _, d: d / jnp.linalg.norm(d), KERNEL),
    "rounded, which it is already": lambda: Computing(
        lambda p, _: jnp.round(256 * p) / 256, nnx.Param(ones(1))
    ),
    "scaled by a mean of two": lambda: Computing(lambda p, g: p * g.mean(), nnx.Param(ones(2))),
    "scaled by a mean of three": lambda: Computing(lambda p, g: p * g.mean(), nnx.Param(ones(3))),
    "scaled by an alternating sum": lambda: Computing(alternating, nnx.Param(ones(4))),
    "scaled by a statistic": lambda: Computing(lambda p, g: p * g, nnx.BatchStat(ones())),
    "scaled by an integer": lambda: Computing(lambda p, g: p * g, nnx.Variable(jnp.int32(1))),
    "masked": lambda: Computing(lambda p, g: p * g, nnx.Variable(jnp.bool_(True))),
}


@pytest.mark.parametrize(
    ("kind", "called"), [*((kind, False) for kind in COMPUTED), ("standardised", True)]
)
@pytest.mark.quick(4)
def test_a_kernel_that_is_computed_at_each_call_is_refused(kind, called, implicit_promotion):
    """Also after an earlier call has left it in its place."""
    model = COMPUTED[kind]()
    if called:
        model(LINE)
    with pytest.raises(ValueError, match="conv: the model computes its kernel at each call"):
        to_attention(model, LINE)


class Halved(nnx.Param):
    """Gives other numbers than it holds."""

    def get_value(self, **options):
        return super().get_value(**options) / 2


def hooked(array):
    return nnx.Param(array, on_get_value=lambda variable, value: value / 2)


@pytest.mark.filterwarnings("ignore:Variable hooks are deprecated")
@pytest.mark.parametrize(
    ("name", "kind", "called"),
    [("kernel", Halved, "Halved"), ("bias", Halved, "Halved"), ("kernel", hooked, "Param")],
)
def test_a_variable_that_computes_its_value_is_refused(name, kind, called):
    conv = nnx.clone(CONV)
    setattr(conv, name, kind(getattr(conv, name)[...]))
    with pytest.raises(ValueError, match=rf"held: conv\.{name} is a {called} that computes"):
        to_attention(Holder(conv), LINE)


def test_a_kernel_that_is_not_a_number_is_not_called_computed():
    conv = nnx.clone(CONV)
    conv.kernel[...] = conv.kernel[...].at[0].set(jnp.nan)
    with pytest.raises(ValueError, match="finite"):
        to_attention(conv, LINE)


def test_a_model_that_reads_the_kernel_is_told_what_to_do():
    class Standardised(nnx.Module):
        def __init__(self) -> None:
            self.conv = nnx.clone(CONV)

        def __call__(self, images):
            return images @ self.conv.kernel[...].mean(0)

    with pytest.raises(AttributeError, match=r"AttentionConv has no kernel.*where="):
        to_attention(Standardised(), LINE)
    layer = AttentionConv.from_kernel(ones(3, 1, 1))
    with pytest.raises(AttributeError, match="AttentionConv has no kernel"):
        layer.kernel = nnx.Param(ones(3, 1, 1))
    assert not hasattr(layer, "kernel")


def test_convolutions_that_functions_hold_are_counted_as_left():
    hidden = nnx.Conv(2, 3, (5,), rngs=nnx.Rngs(0))

    class Partial(nnx.Module):
        def __init__(self) -> None:
            self.conv = nnx.clone(CONV)

        def __call__(self, images):
            return jax.jit(lambda x: hidden(x))(self.conv(images))

    report = to_attention(Partial(), LINE).report
    assert report.left == ("kernel (5, 2, 3)",)
    assert str(report).endswith("1 convolution is left, not converted: kernel (5, 2, 3)")
    assert to_attention(CONV, LINE).report.left == ()


def test_what_is_not_seen_into_is_named():
    def called(images):
        return jax.pure_callback(np.asarray, jax.ShapeDtypeStruct(images.shape, "float32"), images)

    report = to_attention(nnx.Sequential(nnx.clone(CONV), called), LINE).report
    assert report.left == ("inside pure_callback, which is not seen into",)
    assert str(report).endswith("what may hold convolutions: " + report.left[0])


def test_a_function_that_was_compiled_ahead_of_time_is_named():
    """It takes the example as it is, and would be a constant of the trace."""
    compiled = jax.jit(lambda x: nnx.clone(CONV)(x)).lower(LINE).compile()

    class Both(Holder):
        def __call__(self, images):
            return self.held(images) + compiled(images)

    report = to_attention(Both(CONV), LINE).report
    assert report.left == ("inside a function compiled ahead of time, which is not seen into",)
    assert "what may hold convolutions: " + report.left[0] in str(report)


@pytest.mark.slow
def test_convolutions_that_functions_hold_are_counted_in_training_too():
    """Batch statistics and random streams change while the model is traced."""
    hidden = nnx.Conv(2, 3, (5,), rngs=nnx.Rngs(0))
    norm, dropout = nnx.BatchNorm(2, rngs=nnx.Rngs(0)), nnx.Dropout(0.5, rngs=nnx.Rngs(0))
    network = nnx.Sequential(CONV, norm, dropout, lambda images: hidden(images))
    attention, report = to_attention(network, LINE)
    assert report.left == ("kernel (5, 2, 3)",)
    assert not norm.mean[...].any()
    assert not attention.layers[1].mean[...].any()


def test_a_model_that_does_not_trace_says_so():
    class Branching(Holder):
        def __call__(self, images):
            return self.held(images) if float(images.sum()) > 0 else images

    report = to_attention(Branching(CONV), LINE).report
    assert report.left is None
    assert "could not be traced" in str(report)


def test_under_tracing_the_model_is_made_and_nothing_is_measured():
    """What Orbax restores into; and inside of jit."""
    converted = to_attention(CONV, LINE).model
    abstract = nnx.eval_shape(lambda: to_attention(CONV, LINE).model)
    shapes = jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), nnx.state(abstract))
    assert shapes == jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), nnx.state(converted))

    @nnx.jit
    def run(conv, images):
        model, report = to_attention(conv, images)
        assert report.difference is report.layers[0].difference is None
        assert str(report).endswith("the outputs were not compared")
        return model(images)

    assert float(jnp.abs(run(CONV, LINE) - CONV(LINE)).max()) < 1e-6


def test_wrong_channels_are_said_in_our_words():
    with pytest.raises(
        ValueError, match=r"held: inputs.shape=\(1, 5, 1\), but expected 2 channels"
    ):
        to_attention(Holder(CONV, called=True), ones(1, 5, 1))


@pytest.mark.parametrize("framework", ["flax.linen.module", "equinox._module", "haiku", "torch.nn"])
def test_a_model_of_another_framework_is_recognised(framework):
    base = type("Base", (), {"__module__": framework})
    with pytest.raises(
        ValueError, match=r"model=Net is an? .*, but expected an nnx.Module; call convattn"
    ):
        to_attention(type("Net", (base,), {})(), LINE)


@pytest.mark.slow
def test_a_layer_that_is_no_convolution_any_more_is_measured():
    """Against the outputs themselves.

    Weights (1 - ε)S_δ + εJ with another ε than the maps were made for: what does not cancel is
    (ε - ε_0)/(1 - ε_0) of the mean of all N keys through Σ W, and each tap is (1 - ε)/(1 - ε_0) W.
    """
    kernel = np.asarray(jax.random.normal(jax.random.key(3), (3, 2, 2), jnp.float32))
    layer = AttentionConv.from_kernel(kernel)
    layer.uniform_weight_logit[...] += 1
    images = jax.random.uniform(jax.random.key(4), LINE.shape, jnp.float32)
    back, report = to_convolution(layer, images)
    (row,) = report.layers
    true = float(jnp.abs(layer(images) - back(images)).max() / jnp.abs(layer(images)).max())
    assert row.distance == pytest.approx(true, rel=1e-6)
    assert 0.1 < row.distance < 2
    assert report.difference == pytest.approx(true * report.largest, rel=1e-6)
    mean = 2 * (float(jax.nn.sigmoid(1.0)) - 0.5)  # of Σ W, at ε_0 = 1/2; the taps are 2(1 - ε) W
    total = np.linalg.norm(np.asarray(back.kernel[...]))
    assert row.uniform == pytest.approx(mean * np.linalg.norm(kernel.sum(0)) / total, rel=1e-3)
    assert "the uniform head no longer cancels" in str(report)


@pytest.mark.parametrize("use_bias", [True, False])
def test_zeros_tell_nothing(use_bias):
    """A layer that is given zeros gives its bias, whatever its kernel is."""
    conv = nnx.Conv(2, 2, (3,), use_bias=use_bias, rngs=nnx.Rngs(0))
    if use_bias:
        conv.bias[...] = ones(2)
    report = to_attention(conv, 0 * LINE).report
    assert report.difference is not None
    assert report.layers[0].passed is None
    assert report.passed is None
    assert "zeros tell nothing" in str(report)


class Gated(AttentionConv):
    """No convolution."""

    def __call__(self, inputs, out_sharding=None):
        return super().__call__(inputs) * jax.nn.sigmoid(inputs[..., :1])


@pytest.mark.slow
def test_on_zeros_a_layer_that_goes_back_is_compared_on_a_random_image():
    (layer,) = to_convolution(Gated(2, 2, (3,), rngs=nnx.Rngs(0)), 0 * LINE).report.layers
    assert not layer.on_own_inputs
    assert layer.distance > 0.1
    assert f"on a random image of {layer.image_size[0]} pixels" in str(layer)


def test_a_layer_that_is_a_convolution_at_one_size_alone_is_told():
    """Softer heads, and the uniform one refitted so that it cancels on five pixels."""
    images = jax.random.normal(jax.random.key(0), LINE.shape, jnp.float32)
    model = to_attention(Holder(CONV, called=True), images).model
    layer, keys = model.held, 5 + 2
    layer.scores[...] *= 0.8
    weight = np.exp(0.8 * np.log1p(keys))
    maps = np.asarray(layer.output[...]).copy()
    maps[-1] = -maps[:-1].sum(0) * keys / (weight + keys - 1)
    layer.output[...] = jnp.asarray(maps)
    (row,) = to_convolution(model, images).report.layers
    assert row.distance < 1e-5
    assert row.elsewhere > 0.01
    assert row.image_size > (5,)
    assert f"{row.elsewhere:.2e} on a random image of {row.image_size[0]} pixels" in str(row)


def test_a_trained_model_goes_back_with_the_difference_of_its_outputs():
    """Layers of their own, each in its place."""
    convs = [nnx.Conv(2, 2, (3,), rngs=nnx.Rngs(seed)) for seed in range(2)]
    model = to_attention(nnx.Sequential(convs[0], nnx.relu, convs[1]), LINE).model
    for layer in (model.layers[0], model.layers[2]):
        drift = 0.01 * jnp.sin(jnp.arange(layer.output.size, dtype=jnp.float32))
        layer.output[...] = layer.output[...] + drift.reshape(layer.output.shape)
    back, report = to_convolution(model, LINE)
    true = float(jnp.abs(model(LINE) - back(LINE)).max())
    assert report.difference == pytest.approx(true, rel=1e-6)
    assert 1e-3 < report.difference < 0.1 * report.largest


def test_a_model_without_attention_does_not_go_back():
    with pytest.raises(ValueError, match="holds no AttentionConv"):
        to_convolution(Holder(CONV))


def test_convolutions_may_stand_in_lists_and_dictionaries():
    model = Holder(nnx.data({"a": [nnx.clone(CONV)], "b": CONV}))
    converted, _ = to_attention(model, LINE)
    kinds = [type(part) for part in (converted.held["a"][0], converted.held["b"])]
    assert kinds == [AttentionConv, AttentionConv]
    alone, report = to_attention(CONV, LINE)
    assert isinstance(alone, AttentionConv)
    assert report.layers[0].path == ""
    assert np.isfinite(report.difference)


@pytest.mark.slow
@pytest.mark.parametrize("padding", ["SAME", "VALID", ((2, 0),)])
def test_the_kernel_that_comes_back_at_a_stride_is_the_nearest_one(padding):
    """Of a layer whose arrays have moved; the map by unit images, the kernel by least squares."""
    conv = nnx.Conv(1, 1, (3,), strides=2, padding=padding, use_bias=False, rngs=nnx.Rngs(0))
    layer = to_attention(nnx.Sequential(conv), jnp.ones((1, 9, 1))).model.layers[0]
    generator = np.random.default_rng(0)
    moved = nnx.state(layer, nnx.Param)
    nnx.update(layer, jax.tree.map(lambda x: x + 0.1 * generator.normal(size=x.shape), moved))
    images = jnp.eye(9)[..., None]
    outputs = np.asarray(layer(images)).ravel()
    kernel = layer.to_conv((9,))[0].kernel[...]
    taps = []
    for tap in np.eye(3):
        conv.kernel[...] = jnp.asarray(tap, jnp.float32).reshape(3, 1, 1)
        taps.append(np.asarray(conv(images)).ravel())
    nearest = np.linalg.lstsq(np.stack(taps, 1), outputs, rcond=None)[0]
    assert_within(np.asarray(kernel).ravel(), nearest, 1e-5)


@pytest.mark.slow
def test_no_bound_is_derived_of_maps_that_are_stored_in_half_a_float():
    """They round to bfloat16, although the convolution computes in float32."""
    conv = nnx.Conv(2, 2, (3,), param_dtype=jnp.bfloat16, rngs=nnx.Rngs(0))
    report = to_attention(conv, LINE).report
    assert (report.layers[0].bound, report.passed) == (None, None)
