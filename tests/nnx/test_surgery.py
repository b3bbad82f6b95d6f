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
    """Strides, batch norm, a shared depthwise layer, a dictionary, max pooling."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        self.stem = nnx.Conv(3, 8, (3, 3), strides=2, rngs=rngs)
        self.norm = nnx.BatchNorm(8, rngs=rngs)
        self.blocks = nnx.List(
            [
                nnx.Conv(8, 8, (3, 3), feature_group_count=8, rngs=rngs),
                nnx.Conv(8, 6, (2, 2), padding="VALID", use_bias=False, rngs=rngs),
            ]
        )
        self.again = self.blocks[0]
        self.more = nnx.Dict(last=nnx.Conv(6, 6, (1, 1), rngs=rngs))
        self.head = nnx.Linear(6, 10, rngs=rngs)

    def __call__(self, images: jax.Array) -> jax.Array:
        features = nnx.relu(self.norm(self.stem(images)))
        features = nnx.max_pool(features, (2, 2), (2, 2))
        features = self.again(nnx.relu(self.blocks[0](features)))
        features = self.more["last"](self.blocks[1](features))
        return self.head(features.mean((1, 2)))


@pytest.fixture(scope="module")
def network() -> Network:
    model = Network(nnx.Rngs(0))
    model.eval()
    return model


IMAGES = jax.random.normal(jax.random.key(0), (2, 16, 13, 3), jnp.float32)


def ones(*shape: int) -> jax.Array:
    """In the dtype of Flax's parameters."""
    return jnp.ones(shape, jnp.float32)


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
    assert [*layers] == ["again", "blocks.0", "blocks.1", "more.last", "stem"]
    assert (layers["stem"].heads, layers["again"].groups, layers["more.last"].heads) == (10, 8, 2)
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


class Twice(nnx.Module):
    """One convolution under two names."""

    def __init__(self):
        self.a = nnx.Conv(3, 3, (3, 3), rngs=nnx.Rngs(0))
        self.b = self.a

    def __call__(self, images):
        return self.b(nnx.relu(self.a(images)))


def test_a_shared_module_is_taken_by_all_of_its_paths_or_by_none():
    with pytest.raises(ValueError, match="b and a are one module, of which `where` takes one path"):
        to_attention(Twice(), jnp.ones((1, 5, 5, 3)), where=lambda path, conv: path == "a")
    attention = to_attention(Twice(), jnp.ones((1, 5, 5, 3))).model
    assert attention.a is attention.b


def test_a_module_that_is_used_twice_stays_shared(converted):
    assert converted.model.again is converted.model.blocks[0]


def test_the_report_is_a_table(converted):
    lines = str(converted.report).splitlines()
    assert len(lines) == 6
    assert "again" in lines[0]
    assert "10 heads × 8 groups" in lines[0]
    assert lines[-1].endswith("the same classes")


@pytest.mark.slow
def test_it_goes_back(network, converted):
    back, report = to_convolution(converted.model, IMAGES)
    assert [layer.path for layer in report.layers] == [
        "again", "blocks.0", "blocks.1", "more.last", "stem",
    ]  # fmt: skip
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


ONE = nnx.Conv(1, 1, (3,), rngs=nnx.Rngs(0))(ones(1, 5, 1))


class Scaled(nnx.Module):
    """Calls its convolution twice, and takes a keyword argument."""

    def __init__(self) -> None:
        self.conv = nnx.Conv(1, 1, (3,), rngs=nnx.Rngs(0))

    def __call__(self, images, *, scale):
        outputs = self.conv(scale * self.conv(0 * images))
        return {"outputs": outputs, "sign": outputs > 0, "name": "one"}


@pytest.mark.parametrize(
    "as_output",
    [
        lambda x: jax.lax.complex(jnp.ones_like(x), x),
        lambda x: np.float32(x.sum()),
        lambda x: np.bool_(jnp.abs(x).max() > 1.5 * jnp.abs(ONE).max()),
    ],
)
def test_imaginary_parts_and_single_numbers_count(as_output):
    class Other(Scaled):
        def __call__(self, images):
            outputs = self.conv(images) * (3 if isinstance(self.conv, AttentionConv) else 1)
            return jnp.zeros(2), as_output(outputs)

    _, report = to_attention(Other(), ones(1, 5, 1))
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
        to_attention(Other(), ones(1, 5, 1))


def test_a_model_that_asks_for_the_type_of_its_layers_is_compared_as_it_is():
    class Asking(nnx.Module):
        def __init__(self, kind):
            self.kind, self.conv = kind, nnx.Conv(1, 1, (3,), rngs=nnx.Rngs(0))

        def __call__(self, images):
            return self.conv(images) + 10 * (type(self.conv) is self.kind)

    images = ones(1, 5, 1)
    model, report = to_attention(Asking(nnx.Conv), images)
    assert report.difference > 9
    model.kind = AttentionConv
    assert to_convolution(model, images).report.difference > 9


def test_the_report_covers_every_call_and_calls_may_have_keywords():
    images = jax.random.normal(jax.random.key(1), (1, 9, 1), jnp.float32)
    _, report = to_attention(Scaled(), images, call=lambda model, x: model(x + 1, scale=1e3))
    layer = report.layers[0]
    assert report.difference < 1
    assert 0 <= layer.difference <= layer.bound


def test_what_is_not_a_number_is_not_hidden():
    class Broken(Scaled):
        def __call__(self, images):
            outputs = self.conv(images)
            return outputs, outputs * (jnp.nan if isinstance(self.conv, AttentionConv) else 1)

    _, report = to_attention(Broken(), ones(1, 5, 1))
    assert np.isnan(report.difference)


def test_what_is_not_a_number_in_one_step_or_call_is_not_hidden():
    conv = nnx.vmap(lambda rngs: nnx.Conv(1, 1, (3,), rngs=rngs))(nnx.Rngs(0).split(2))
    layer = AttentionConv.from_conv(conv)
    layer.output[...] = layer.output[...].at[1].set(jnp.nan)
    assert np.isnan(layer.to_conv().distance)
    attention = AttentionConv.from_conv(nnx.Conv(1, 1, (3,), rngs=nnx.Rngs(0)))
    _, report = to_convolution(
        attention, ones(1, 5, 1), call=lambda model, x: (model(x), model(x * jnp.nan))[0]
    )
    assert np.isnan(report.layers[0].distance)


@pytest.mark.parametrize("where", [None, lambda path, _: path == "held.0"])
def test_parameters_that_are_shared_are_refused(where):
    model = Holder(nnx.data([nnx.clone(CONV), nnx.clone(CONV)]))
    model.held[1].kernel = model.held[0].kernel
    with pytest.raises(ValueError, match=r"held\.[01]\.kernel is also held\.[01]\.kernel"):
        to_attention(model, ones(1, 5, 2), where=where)


@pytest.mark.parametrize("name", ["kernel", "bias"])
def test_parameters_that_the_model_holds_itself_are_refused(name):
    model = Holder(nnx.clone(CONV))
    model.tied = getattr(model.held, name)
    with pytest.raises(ValueError, match=rf"tied is also held\.{name}, but expected a parameter"):
        to_attention(model, ones(1, 5, 2))


class Pair(nnx.Pytree):
    def __init__(self, first) -> None:
        self.first = first


HELD_BY = [lambda x: nnx.data((x,)), Pair, lambda x: nnx.data(nnx.State({"first": x}))]


@pytest.mark.parametrize("held_by", HELD_BY)
def test_parameters_that_other_pytrees_hold_are_refused(held_by):
    model = Holder(nnx.clone(CONV))
    model.tied = held_by(model.held.kernel)
    with pytest.raises(
        ValueError, match=r"tied\.(0|first) is also held\.kernel, but expected a par"
    ):
        to_attention(model, ones(1, 5, 2))


def test_what_a_pytree_of_flax_holds_is_replaced():
    model = Holder(Pair(nnx.clone(CONV)))
    assert isinstance(to_attention(model, ones(1, 5, 2)).model.held.first, AttentionConv)


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


class Holder(nnx.Module):
    """A model with one module, held as it is given."""

    def __init__(self, held) -> None:
        self.held = held

    def __call__(self, images):
        return images


CONV = nnx.Conv(2, 2, (3,), rngs=nnx.Rngs(0))


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
        (Holder(nnx.data((CONV, CONV))), "held.0 is held by something else than a module"),
    ],
)
def test_what_cannot_be_converted_is_named(model, message):
    with pytest.raises(ValueError, match=message):
        to_attention(model, ones(1, 5, 2))


class Wrapped(nnx.Module):
    """A convolution in a wrapper that computes its kernel, called or not."""

    def __init__(self, wrapper, called=True) -> None:
        self.wrapper, self.called = wrapper, called

    def __call__(self, images):
        return self.wrapper(images) if self.called else images


class Halving(nnx.Module):
    """Rewrites the kernel that it holds."""

    def __init__(self) -> None:
        self.conv = nnx.Conv(1, 2, (3,), rngs=nnx.Rngs(0))

    def __call__(self, images):
        self.conv.kernel[...] = self.conv.kernel[...] / 2
        return self.conv(images)


@pytest.mark.parametrize("called", [True, False])
@pytest.mark.parametrize("kind", [nnx.WeightNorm, nnx.SpectralNorm])
def test_wrappers_that_compute_a_kernel_are_refused_by_name(kind, called):
    wrapper = kind(nnx.Conv(1, 2, (3,), rngs=nnx.Rngs(0)), rngs=nnx.Rngs(0))
    message = rf"wrapper\.layer_instance: nnx\.{kind.__name__} computes its kernel at each call"
    with pytest.raises(ValueError, match=message):
        to_attention(Wrapped(wrapper, called), ones(1, 5, 1))


class Nonnegative(nnx.Module):
    """Projects the kernel that it holds, which does not move once it is in the set."""

    def __init__(self) -> None:
        self.conv = nnx.Conv(1, 2, (3,), rngs=nnx.Rngs(0))
        self.conv.kernel[...] = jnp.abs(self.conv.kernel[...])

    def __call__(self, images):
        state = nnx.state(self.conv, nnx.Param)
        nnx.update(self.conv, jax.tree.map(lambda p: jnp.maximum(p, 0), state))
        return self.conv(images)


class Computed(nnx.Module):
    """Computes a kernel from the one that it holds, and from others."""

    def __init__(self, compute, gains=4) -> None:
        self.conv, self.compute = nnx.Conv(1, 2, (3,), rngs=nnx.Rngs(0)), compute
        self.gain = nnx.Param(jnp.ones(gains))
        self.conv.kernel[...] = jnp.round(256 * self.conv.kernel[...]) / 256

    def __call__(self, images):
        graph, state = nnx.split(self.conv)
        kernels = jax.tree.map(lambda p: self.compute(p, self.gain[...]), state)
        return nnx.merge(graph, kernels)(images)


@pytest.mark.parametrize(
    "model",
    [
        Nonnegative(),
        *(Computed(lambda p, gain: p * gain.mean(), gains) for gains in (1, 2, 3, 4)),
        Computed(lambda p, gain: p * (gain[::2].sum() - gain[1::2].sum() + 1)),
        Computed(lambda p, gain: jnp.round(256 * p) / 256),  # which its kernel is already
    ],
)
def test_a_kernel_that_is_projected_or_scaled_is_refused(model):
    with pytest.raises(ValueError, match=r"wrapper\.conv: the model computes its kernel at each"):
        to_attention(Wrapped(model), ones(1, 5, 1))


def test_a_kernel_that_changes_when_the_model_is_called_is_refused():
    with pytest.raises(ValueError, match=r"wrapper\.conv: the model computes its kernel at each"):
        to_attention(Wrapped(Halving()), ones(1, 5, 1))


class Halved(nnx.Param):
    """Gives other numbers than it holds."""

    def get_value(self, **options):
        return super().get_value(**options) / 2


@pytest.mark.parametrize("name", ["kernel", "bias"])
def test_a_variable_that_computes_its_value_is_refused(name):
    conv = nnx.clone(CONV)
    setattr(conv, name, Halved(getattr(conv, name)[...]))
    with pytest.raises(ValueError, match=rf"conv\.{name} is a Halved that computes its value at e"):
        to_attention(nnx.Sequential(conv), ones(1, 5, 2))


@pytest.mark.filterwarnings("ignore:Variable hooks are deprecated")
def test_a_variable_with_a_hook_is_refused():
    conv = nnx.clone(CONV)
    conv.kernel = nnx.Param(conv.kernel[...], on_get_value=lambda variable, value: value / 2)
    with pytest.raises(ValueError, match=r"conv\.kernel is a Param that computes its value"):
        to_attention(nnx.Sequential(conv), ones(1, 5, 2))


def test_a_kernel_that_is_not_a_number_is_not_called_computed():
    conv = nnx.Conv(1, 2, (3,), rngs=nnx.Rngs(0))
    conv.kernel[...] = conv.kernel[...].at[0].set(jnp.nan)
    with pytest.raises(ValueError, match="finite"):
        to_attention(conv, ones(1, 5, 1))


def test_a_model_that_reads_the_kernel_is_told_what_to_do():
    class Standardised(nnx.Module):
        def __init__(self) -> None:
            self.conv = nnx.Conv(1, 2, (3,), rngs=nnx.Rngs(0))

        def __call__(self, images):
            return images @ self.conv.kernel[...].mean(0)

    with pytest.raises(AttributeError, match=r"AttentionConv has no kernel.*where="):
        to_attention(Standardised(), ones(1, 5, 1))
    layer = AttentionConv.from_kernel(ones(3, 1, 1))
    with pytest.raises(AttributeError, match="AttentionConv has no kernel"):
        layer.kernel = nnx.Param(ones(3, 1, 1))
    assert not hasattr(layer, "kernel")


def test_convolutions_that_functions_hold_are_counted_as_left():
    hidden = nnx.Conv(2, 3, (5,), rngs=nnx.Rngs(0))

    class Partial(nnx.Module):
        def __init__(self) -> None:
            self.conv = nnx.Conv(1, 2, (3,), rngs=nnx.Rngs(0))

        def __call__(self, images):
            return jax.jit(lambda x: hidden(x))(self.conv(images))

    report = to_attention(Partial(), ones(1, 9, 1)).report
    assert report.left == ("kernel (5, 2, 3)",)
    assert str(report).endswith("1 convolution is left, not converted: kernel (5, 2, 3)")
    assert to_attention(nnx.Conv(1, 2, (3,), rngs=nnx.Rngs(0)), ones(1, 9, 1)).report.left == ()


def test_what_is_not_seen_into_is_named():
    def called(images):
        return jax.pure_callback(np.asarray, jax.ShapeDtypeStruct(images.shape, "float32"), images)

    report = to_attention(nnx.Sequential(nnx.clone(CONV), called), ones(1, 5, 2)).report
    assert report.left == ("inside pure_callback, which is not seen into",)
    assert str(report).endswith("what may hold convolutions: " + report.left[0])


def test_a_function_that_was_compiled_ahead_of_time_is_named():
    """It takes the example as it is, and would be a constant of the trace."""
    images = ones(1, 5, 2)
    compiled = jax.jit(lambda x: nnx.clone(CONV)(x)).lower(images).compile()

    class Both(Holder):
        def __call__(self, images):
            return self.held(images) + compiled(images)

    report = to_attention(Both(CONV), images).report
    assert report.left == ("inside a function compiled ahead of time, which is not seen into",)
    assert "what may hold convolutions: " + report.left[0] in str(report)


def test_convolutions_that_functions_hold_are_counted_in_training_too():
    """Batch statistics and random streams change while the model is traced."""
    hidden = nnx.Conv(2, 3, (5,), rngs=nnx.Rngs(0))
    norm, dropout = nnx.BatchNorm(2, rngs=nnx.Rngs(0)), nnx.Dropout(0.5, rngs=nnx.Rngs(0))
    conv = nnx.Conv(1, 2, (3,), rngs=nnx.Rngs(0))
    network = nnx.Sequential(conv, norm, dropout, lambda images: hidden(images))
    attention, report = to_attention(network, ones(1, 9, 1))
    assert report.left == ("kernel (5, 2, 3)",)
    assert not norm.mean[...].any()
    assert not attention.layers[1].mean[...].any()


def test_a_model_that_does_not_trace_says_so():
    class Branching(Holder):
        def __call__(self, images):
            return self.held(images) if float(images.sum()) > 0 else images

    report = to_attention(Branching(CONV), ones(1, 5, 2)).report
    assert report.left is None
    assert "could not be traced" in str(report)


def test_under_tracing_the_model_is_made_and_nothing_is_measured():
    """What Orbax restores into; and inside of jit."""
    images = ones(1, 5, 2)
    converted = to_attention(CONV, images).model
    abstract = nnx.eval_shape(lambda: to_attention(CONV, images).model)
    shapes = jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), nnx.state(abstract))
    assert shapes == jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), nnx.state(converted))

    @nnx.jit
    def run(conv, images):
        model, report = to_attention(conv, images)
        assert report.difference is report.layers[0].difference is None
        assert str(report).endswith("the outputs were not compared")
        return model(images)

    assert float(jnp.abs(run(CONV, images) - CONV(images)).max()) < 1e-6


def test_wrong_channels_are_said_in_our_words():
    with pytest.raises(
        ValueError, match=r"stem: inputs.shape=\(1, 8, 8, 1\), but expected 3 chann"
    ):
        to_attention(Network(nnx.Rngs(0)), ones(1, 8, 8, 1))


@pytest.mark.parametrize("framework", ["flax.linen.module", "equinox._module", "haiku", "torch.nn"])
def test_a_model_of_another_framework_is_recognised(framework):
    base = type("Base", (), {"__module__": framework})
    with pytest.raises(
        ValueError, match=r"model=Net is an? .*, but expected an nnx.Module; call convattn"
    ):
        to_attention(type("Net", (base,), {})(), ones(1, 5, 1))
    with pytest.raises(ValueError, match=r"model=Network is a class.*call the class"):
        to_attention(Network, ones(1, 5, 1))


def moved(size, shift):
    """A layer of 3 channels whose leak was trained away, and its deviation from a loop in numpy.

    Weights (1 - ε)S_δ + εJ with another ε than the maps were made for: what does not cancel is
    (ε - ε_0)/(1 - ε_0) of the mean of all N keys through Σ W, and each tap is (1 - ε)/(1 - ε_0) W.
    """
    kernel = jax.random.normal(jax.random.key(3), (size, size, 3, 3), jnp.float32)
    layer = AttentionConv.from_kernel(kernel)
    layer.uniform_weight_logit[...] = layer.uniform_weight_logit[...] + shift
    images = jax.random.uniform(jax.random.key(4), (2, 14, 14, 3), jnp.float32)
    return layer, images


@pytest.mark.parametrize("size", [1, 3])
def test_a_layer_that_is_no_convolution_any_more_is_measured(size):
    """Against the outputs themselves, on images much larger than the kernel."""
    layer, images = moved(size, 1.0)
    back, report = to_convolution(layer, images)
    (row,) = report.layers
    true = float(jnp.abs(layer(images) - back(images)).max() / jnp.abs(layer(images)).max())
    assert row.distance == pytest.approx(true, rel=1e-6)
    assert 0.1 < row.distance < 2
    assert report.difference == pytest.approx(true * report.largest, rel=1e-6)
    uniform_weight = float(jax.nn.sigmoid(1.0))
    mean = 2 * (
        uniform_weight - 0.5
    )  # of Σ W, at ε_0 = 1/2; the taps are 2(1 - ε) W, and a share of it
    total = np.linalg.norm(np.asarray(back.kernel[...]))
    kernel = jax.random.normal(jax.random.key(3), (size, size, 3, 3), jnp.float32)
    expected = mean * np.linalg.norm(np.asarray(kernel).sum((0, 1))) / total
    assert row.uniform == pytest.approx(expected, rel=1e-3)
    assert "the uniform head no longer cancels" in str(report)
    alone = layer.to_conv()
    assert alone.distance > 0.1
    assert alone.uniform == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize("use_bias", [True, False])
def test_zeros_tell_nothing(use_bias):
    """A layer that is given zeros gives its bias, whatever its kernel is."""
    net = nnx.Sequential(nnx.Conv(2, 3, (3, 3), use_bias=use_bias, rngs=nnx.Rngs(0)))
    if use_bias:
        net.layers[0].bias[...] = jnp.ones(3)
    report = to_attention(net, jnp.zeros((1, 8, 8, 2))).report
    assert report.difference is not None
    assert report.layers[0].passed is None
    assert report.passed is None
    assert "zeros tell nothing" in str(report)


class Gated(AttentionConv):
    """No convolution."""

    def __call__(self, inputs, out_sharding=None):
        return super().__call__(inputs) * jax.nn.sigmoid(inputs[..., :1])


def test_on_zeros_a_layer_that_goes_back_is_compared_on_a_random_image():
    net = nnx.Sequential(Gated(2, 3, (3, 3), rngs=nnx.Rngs(0)))
    (layer,) = to_convolution(net, jnp.zeros((1, 16, 16, 2))).report.layers
    assert not layer.on_own_inputs
    assert layer.distance > 0.1
    assert "on a random image of 32 × 32 pixels" in str(layer)


def test_a_layer_that_is_a_convolution_at_one_size_alone_is_told():
    """Softer heads, and the uniform one refitted so that it cancels on 16 × 16 pixels."""
    images = jax.random.normal(jax.random.key(0), (1, 16, 16, 2), jnp.float32)
    net = nnx.Sequential(nnx.Conv(2, 3, (3, 3), rngs=nnx.Rngs(0)))
    model = to_attention(net, images).model
    layer, keys = model.layers[0], 18 * 18
    layer.scores[...] *= 0.8
    weight = np.exp(0.8 * np.log1p(keys))
    maps = np.asarray(layer.output[...]).copy()
    maps[-1] = -maps[:-1].sum(0) * keys / (weight + keys - 1)
    layer.output[...] = jnp.asarray(maps)
    (row,) = to_convolution(model, images).report.layers
    assert row.distance < 1e-5
    assert row.elsewhere > 0.01
    assert row.image_size == (32, 32)
    assert f"{row.elsewhere:.2e} on a random image of 32 × 32 pixels" in str(row)


def test_a_trained_model_goes_back_with_the_difference_of_its_outputs():
    model = to_attention(Network(nnx.Rngs(0)), IMAGES).model
    for layer in (model.stem, model.blocks[1], model.more["last"]):
        drift = 0.01 * jnp.sin(jnp.arange(layer.output.size, dtype=jnp.float32))
        layer.output[...] = layer.output[...] + drift.reshape(layer.output.shape)
    back, report = to_convolution(model, IMAGES)
    true = float(jnp.abs(model(IMAGES) - back(IMAGES)).max())
    assert report.difference == pytest.approx(true, rel=1e-6)
    assert report.difference > 1e-3


def test_a_model_without_attention_does_not_go_back():
    with pytest.raises(ValueError, match="holds no AttentionConv"):
        to_convolution(Holder(CONV))


def test_convolutions_may_stand_in_lists_and_dictionaries():
    model = Holder(nnx.data({"a": [nnx.clone(CONV)], "b": CONV}))
    converted, _ = to_attention(model, ones(1, 5, 2))
    kinds = [type(part) for part in (converted.held["a"][0], converted.held["b"])]
    assert kinds == [AttentionConv, AttentionConv]
    alone, report = to_attention(CONV, ones(1, 5, 2))
    assert isinstance(alone, AttentionConv)
    assert report.layers[0].path == ""
    assert np.isfinite(report.difference)


@pytest.mark.parametrize("padding", ["SAME", "VALID", ((2, 0),)], ids=str)
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


def test_no_bound_is_derived_of_maps_that_are_stored_in_half_a_float():
    """They round to bfloat16, although the convolution computes in float32."""
    narrow = {"param_dtype": jnp.bfloat16, "use_bias": False, "rngs": nnx.Rngs(0)}
    conv = nnx.Conv(4, 8, (2,), strides=2, kernel_dilation=3, feature_group_count=4, **narrow)
    report = to_attention(nnx.Sequential(conv), jnp.ones((1, 13, 4))).report
    assert (report.layers[0].bound, report.passed) == (None, None)
