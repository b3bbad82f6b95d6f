"""Functions of every kind, their convolutions computed as attention."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from networks.transformation.convolutions import assert_attention, convolve, integers

from convattn.networks.transformation.attention_of import attention_of
from convattn.networks.transformation.contents import remaining_convolutions
from convattn.networks.transformation.with_attention import with_attention

IMAGES, KERNEL = integers(2, 6, 5, 3) / 4, integers(3, 3, 3, 3, seed=1) / 16
KERNELS = integers(3, 3, 3, 3, 3, seed=2) / 16
MOVED = ("parameter", "bitcast", "copy", "transpose", "fusion")
CLOSE = 1e-12  # largest relative difference in float64; derived bounds are for single layers


@jax.custom_jvp
def doubled_slope(images):
    return convolve(images, KERNEL)


@doubled_slope.defjvp
def _(primals, tangents):
    return doubled_slope(*primals), 2 * convolve(*tangents, KERNEL)


@jax.custom_vjp
def tripled_slope(images, scale):
    return scale * convolve(images, KERNEL)


tripled_slope.defvjp(
    lambda images, scale: (tripled_slope(images, scale), scale),
    lambda scale, cotangents: (3 * scale * convolve(cotangents, KERNEL[::-1, ::-1]), 5.0),
)


def layer(images, kernel=KERNEL):
    return jnp.tanh(convolve(images, kernel))


FUNCTIONS = {
    "jit": jax.jit(lambda x: jax.jit(layer)(x) + 1),
    "scan": lambda x: lax.scan(lambda c, k: (layer(c, k), c.sum()), x, KERNELS),
    "reversed scan": lambda x: lax.scan(
        lambda c, k: (layer(c, k), c), x, KERNELS, reverse=True, unroll=2
    )[1],
    "fori_loop": lambda x: lax.fori_loop(0, 2, lambda _, c: layer(c), x),
    "cond": lambda x: lax.cond(x.sum() > 9, lambda c: c, layer, x),
    "switch": lambda x: lax.switch(1, [lambda c: c, layer, lambda c: 2 * layer(c)], x),
    "remat": jax.checkpoint(lambda x: layer(layer(x))),
    "vmap": lambda x: jax.vmap(layer, (None, 0))(x, KERNELS),
    "map": lambda x: lax.map(lambda k: layer(x, k), KERNELS),
    "custom_jvp": doubled_slope,
    "custom_vjp": lambda x: tripled_slope(x, x.mean()),
    "nested": jax.jit(
        lambda x: lax.scan(
            jax.checkpoint(lambda c, k: (doubled_slope(layer(c, k)), None)), x, KERNELS
        )
    ),
    "computed kernel": lambda x: convolve(x, jnp.tanh(KERNEL + x.mean())),
}  # fmt: skip


def assert_close(result, expected):
    pairs = zip(jax.tree.leaves(result), jax.tree.leaves(expected), strict=True)
    for one, other in pairs:
        np.testing.assert_allclose(one, other, rtol=0, atol=CLOSE * float(abs(other).max()))


@pytest.mark.quick(3)
@pytest.mark.parametrize(
    ("name", "backend"),
    [*((name, "auto") for name in FUNCTIONS), ("nested", "dense"), ("computed kernel", "dense")],
)
def test_at_any_depth_values_and_gradients_are_those_of_the_function(name, backend):
    function = FUNCTIONS[name]
    attended = with_attention(function, backend=backend)

    def with_slope(of):
        def loss(images):
            outputs = of(images)
            return sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(outputs)), outputs

        return jax.grad(loss, has_aux=True)

    assert_close(jax.jit(with_slope(attended))(IMAGES), jax.jit(with_slope(function))(IMAGES))
    assert remaining_convolutions(attended, IMAGES) == ()
    assert remaining_convolutions(with_slope(attended), IMAGES) == ()


def again(images):
    return lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, layer(c[1])), (0, images))[1]


def slope(images):
    return jax.grad(lambda x, k: layer(x, k).sum(), argnums=(0, 1))(images, KERNEL)


def in_scope(name):
    def function(images):
        with jax.named_scope(name):
            return layer(images)

    return function


@pytest.mark.parametrize(
    "function",
    [again, slope, in_scope("attention"), in_scope("convattn")],
)
def test_a_loop_a_gradient_and_what_is_called_attention_are_converted(function):
    attended = with_attention(function)
    assert_close(attended(IMAGES), function(IMAGES))
    assert remaining_convolutions(attended, IMAGES) == ()


@pytest.mark.parametrize("backend", ["auto", "dense"])
def test_it_is_batched_and_differentiated_forward(backend):
    attended = with_attention(layer, backend=backend)
    assert_close(
        jax.vmap(attended, (None, 0))(IMAGES, KERNELS), jax.vmap(layer, (None, 0))(IMAGES, KERNELS)
    )
    tangents = (IMAGES,), (IMAGES**2,)
    assert_close(jax.jvp(attended, *tangents), jax.jvp(layer, *tangents))


@pytest.mark.parametrize(
    ("options", "heads"),
    [
        ({}, 10),
        ({"form": "limit", "sharpness": 50.0}, 9),
        ({"uniform_weight": 0.25}, 10),
        ({"border": "register"}, 18),
    ],
)
@pytest.mark.quick(2)
def test_forms_have_their_heads(options, heads):
    assert_close(with_attention(layer, **options)(IMAGES), layer(IMAGES))
    (made,) = attention_of(layer, IMAGES, **options).layers.values()
    assert made.heads == heads
    text = str(jax.make_jaxpr(with_attention(layer, backend="dense", **options))(IMAGES))
    assert f"[{heads}" in text


def test_a_kernel_of_low_rank_takes_the_fewest_heads():
    sobel = jnp.outer(jnp.array([1.0, 2.0, 1.0]), jnp.array([-1.0, 0.0, 1.0]))[..., None, None]
    image = IMAGES[..., :1]
    attended = with_attention(convolve, num_heads="min")
    assert_close(attended(image, sobel), convolve(image, sobel))
    with pytest.raises(ValueError, match=r"num_heads='min', but its kernel has no values .*leave"):
        jax.jit(attended)(image, sobel)


def test_where_and_pointwise_leave_convolutions():
    def function(images):
        with jax.named_scope("first"):
            images = convolve(images, KERNEL[:1, :1])
        with jax.named_scope("second"):
            return convolve(images, KERNEL)

    converted = with_attention(function, pointwise="keep", strict=True)
    assert remaining_convolutions(converted, IMAGES) == ("kernel (1, 1, 3, 3)",)
    chosen = with_attention(function, where=lambda site: site.name == "first", strict=True)
    assert remaining_convolutions(chosen, IMAGES) == ("kernel (3, 3, 3, 3)",)
    assert_close(converted(IMAGES), function(IMAGES))


def test_attention_is_not_converted_again():
    once = with_attention(layer)
    twice = with_attention(once)
    assert_close(twice(IMAGES), layer(IMAGES))
    sizes = [len(str(jax.make_jaxpr(each)(IMAGES))) for each in (once, twice)]
    assert sizes[1] <= 1.1 * sizes[0]


def test_arguments_of_any_structure_and_static_ones():
    def function(images, options, *, scale):
        kernel = options["kernel"] if options["use"] else KERNEL  # a choice of Python
        return {"result": scale * convolve(images, kernel), "name": None}

    options = {"kernel": KERNELS[0], "use": True, "word": "any", "function": layer}
    result = with_attention(function)(IMAGES, options, scale=2.0)
    assert_close(result, function(IMAGES, options, scale=2.0))


def test_constants_among_the_outputs_are_arrays_and_dtypes_are_no_arguments():
    def function(images, dtype):
        constants = jnp.zeros(()), 2.0, np.ones(3), jax.random.key(0)
        return convolve(images, KERNEL).astype(dtype), *constants

    outputs = with_attention(function)(IMAGES, np.float32)
    compiled = jax.jit(function, static_argnums=1)(IMAGES, np.float32)
    for output, expected in zip(outputs, compiled, strict=True):
        assert isinstance(output, jax.Array)
        assert jax.typeof(output) == jax.typeof(expected)
    assert attention_of(lambda images: function(images, "float64"), IMAGES).report.passed


def test_shardings_and_shard_map():
    mesh = jax.make_mesh((1,), ("images",), axis_types=(jax.sharding.AxisType.Auto,))
    spec = jax.P("images")
    sharded = jax.shard_map(layer, mesh=mesh, in_specs=spec, out_specs=spec)
    sharding = jax.sharding.NamedSharding(mesh, spec)
    compiled = jax.jit(layer, in_shardings=sharding, out_shardings=sharding)
    for function in (sharded, compiled):
        attended = with_attention(function, strict=True)
        assert_close(jax.jit(attended)(IMAGES), layer(IMAGES))
        assert remaining_convolutions(attended, IMAGES) == ()


@pytest.mark.usefixtures("unchecked")  # jaxtyping knows no symbols
def test_it_is_exported_with_a_symbolic_batch():
    (batch,) = jax.export.symbolic_shape("batch")
    shape = jax.ShapeDtypeStruct((batch, *IMAGES.shape[1:]), IMAGES.dtype)
    exported = jax.export.export(jax.jit(with_attention(layer)))(shape)
    assert_close(exported.call(IMAGES), layer(IMAGES))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"form": "exakt"}, "form='exakt', but expected one of None, 'exact', 'limit'"),
        ({"pointwise": "no"}, "pointwise='no'"),
        ({"backend": "windowed"}, "backend='windowed', but expected one of 'auto', "),
        ({"backend": "fast"}, "backend='fast', but expected one of 'auto', "),
        ({"num_heads": 3}, "num_heads=3, but expected one of None, 'min'"),
        ({"uniform_weight": 1.0}, r"uniform_weight=1.0, but expected a number in \(0, 1\)"),
        ({"uniform_weight": np.float32(2)}, r"uniform_weight=.*2.0.*, but expected a number"),
        ({"uniform_weight": "half"}, "uniform_weight='half', but expected a number"),
        ({"uniform_weight": True}, "uniform_weight=True, but expected a number"),
        ({"uniform_weight": np.full(2, 0.5)}, r"uniform_weight=array.*, but expected a number"),
        ({"uniform_weight": 0.1, "form": "limit"}, "uniform_weight=0.1, but the limit form has"),
        ({"sharpness": -1.0, "form": "limit"}, "sharpness=-1.0, but expected a positive finite"),
        ({"sharpness": np.nan, "form": "limit"}, "sharpness=nan, but expected a positive finite"),
        ({"sharpness": 30.0}, "sharpness=30.0, but the exact form has none"),
        ({"head_dim": 0}, "head_dim=0"),
        ({"where": "stem"}, "where='stem', but expected a function"),
        ({"strict": "yes"}, "strict='yes'"),
        ({"border": "ring"}, "border='ring', but expected one of 'zeros', 'register'"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        with_attention(layer, **options)


def test_a_register_stands_for_zeros_as_far_as_the_kernel_reaches():
    function = with_attention(lambda x: convolve(x, KERNEL, padding="VALID"), border="register")
    with pytest.raises(ValueError, match=r"kernel \(3, 3, 3, 3\): border='register' with padding"):
        function(IMAGES)


def test_functions_that_cannot_be_traced_are_refused():
    with pytest.raises(ValueError, match=r"function=<lambda> gives 'sum', but expected arrays"):
        with_attention(lambda images: (images.sum(), "sum"))(IMAGES)
    with pytest.raises(ValueError, match=r"function=5, but expected a function of arrays"):
        with_attention(5)

    def picky(images):
        return layer(images) if images.sum() > 0 else images

    with pytest.raises(ValueError, match=r"function=picky cannot be traced: .*use lax.cond"):
        with_attention(picky)(IMAGES)


@pytest.mark.parametrize("order", [("NHWC", "HWIO", "NHWC"), ("NCHW", "OIHW", "NCHW")])
@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.quick(2)
def test_the_program_computes_no_more_than_that_of_the_convolution(order, groups):
    axes, shape = (0, 2, 3, 1), (3, 3, 4 // groups, 8)
    images, kernel = jnp.ones((2, 9, 8, 4)), jnp.ones(shape)
    if order[0] == "NCHW":
        images, kernel = images.transpose(np.argsort(axes)), kernel.transpose(3, 2, 0, 1)

    def strided(images, kernel):
        return convolve(
            images,
            kernel,
            window_strides=(2, 2),
            dimension_numbers=order,
            feature_group_count=groups,
        )

    def operations(function):
        text = jax.jit(function).lower(images, kernel).compile().as_text()
        names = re.findall(r" = \S+ ([a-z-]+)\(", text)
        computed = [name for name in names if name not in MOVED]
        return computed, re.findall(r"window=.*dim_labels=[\w>-]+", text)

    assert operations(with_attention(strided)) == operations(strided)
    assert "exponential" not in operations(strided)[0]
    names, _ = operations(with_attention(strided, backend="chunked"))
    assert "exponential" in names


def test_narrow_heads_are_within_the_derived_bound():
    assert_attention(convolve, IMAGES.astype(np.float32), KERNEL.astype(np.float32), head_dim=2)
