"""The derived bound on the outputs of two runs: it holds, it is not vacuous, it convicts."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.ad_checkpoint import checkpoint_name
from networks.transformation.convolutions import convolve, integers

from convattn.networks.transformation import attention_of as module
from convattn.networks.transformation.attention_of import attention_of

IMAGES, KERNEL = integers(2, 8, 7, 3) / 4, integers(3, 3, 3, 3, seed=1) / 16
WEIGHTS = integers(3, 5, seed=3) / 4


def features(images):
    return convolve(images, KERNEL.astype(images.dtype))


def pooled(images, window=(1, 2, 2, 1)):
    return lax.reduce_window(images, -jnp.inf, lax.max, window, window, "SAME")


def attention(images):
    tokens = features(images).reshape(2, -1, 3)
    weights = jax.nn.softmax(jnp.einsum("bqc,bkc->bqk", tokens, tokens), axis=-1)
    return jnp.einsum("bqk,bkc->bqc", weights, tokens)


def two_steps(images):
    kernels = jnp.stack([KERNEL, -KERNEL])
    return lax.scan(lambda c, k: (jnp.tanh(convolve(c, k)), c[0, 0, 0]), images, kernels)


def excited(images):
    squeezed = features(images).mean((1, 2), keepdims=True)
    return features(images) * jax.nn.sigmoid(squeezed)


def mean_pooled(images):
    window = (1, 2, 2, 1)
    return lax.reduce_window(images + features(images), 0.0, lax.add, window, window, "VALID") / 4


def masked(images):
    scores = jnp.where(jnp.arange(3) < 2, features(images), -jnp.inf)
    return jax.nn.softmax(scores, axis=-1)


def written(images):
    return images.at[:, 0].set(features(images)[:, 1]).at[:, 1].set(0)


def slope_of_pooling(images):
    return jax.grad(lambda x: (pooled(features(x), (1, 3, 3, 1)) ** 2).sum())(images)


def overlapping(images):
    window, stride = (1, 3, 3, 1), (1, 2, 2, 1)

    def total(images):
        outputs = lax.reduce_window(features(images), -jnp.inf, lax.max, window, stride, "SAME")
        return (outputs**2).sum()

    return jax.grad(total)(images)


FUNCTIONS = {
    "linear": lambda x: features(x).mean((1, 2)) @ WEIGHTS,
    "relu": lambda x: jax.nn.relu(features(x)),
    "hard swish": lambda x: jax.nn.hard_swish(features(x)),
    "max pooling": lambda x: pooled(jax.nn.relu(features(x))),
    "mean pooling": mean_pooled,
    "layer norm": lambda x: jax.nn.standardize(features(x), axis=-1, epsilon=1e-3),
    "squeeze and excitation": excited,
    "attention": attention,
    "where": lambda x: jnp.where(features(x) > 0, features(x), 0.1 * features(x)),
    "dense connections": lambda x: features(jnp.concatenate([x, features(x)], -1)[..., 1:4]),
    "scan": two_steps,
    "dynamic filter": lambda x: convolve(x, jax.nn.softmax(KERNEL + features(x).mean(), axis=0)),
    "kept": lambda x: convolve(features(x), KERNEL[:1, :1]),
    "masked by infinity": masked,
    "infinite entries": lambda x: jnp.where(x > 0, features(x), -jnp.inf)[..., 0].max(axis=1),
    "log of a sum": lambda x: jax.nn.logsumexp(features(x), axis=-1),
    "steps": lambda x: features(x) * jnp.sign(features(x)) + jnp.round(features(x) / 7),
    "written": written,
    "tiled": lambda x: jnp.tile(features(x), (1, 2, 1, 1)),
    "slope of max pooling": slope_of_pooling,
    "slope of overlapping windows": overlapping,
    "named for a checkpoint": lambda x: checkpoint_name(features(x), "features"),
    "norm": lambda x: features(x) / jnp.sqrt(1 + (features(x) ** 2).sum(-1, keepdims=True)),
    "resized": lambda x: jax.image.resize(features(x), (2, 16, 14, 3), "bilinear"),
    "compiled": jax.jit(lambda x: jax.checkpoint(jax.nn.gelu)(features(x))),
}


@pytest.mark.quick(4)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_differences_are_within_bounds_that_say_something(name):
    options = {"pointwise": "keep"} if name == "kept" else {}
    report = attention_of(FUNCTIONS[name], IMAGES, **options).report
    assert report.without_rule is None
    assert report.passed
    assert len(report.entries) >= 5
    assert 0 < max(difference for difference, _ in report.entries) <= report.difference
    assert report.bound < 1e-9 * max(1, min(report.largest, 100))


def test_float32_has_a_bound_too():
    report = attention_of(FUNCTIONS["compiled"], IMAGES.astype(np.float32)).report
    assert report.passed
    assert report.difference < report.bound < 1e-2


def test_an_error_that_rounding_does_not_explain_fails(monkeypatch):
    class Wrong(module.ConversionOptions):
        """Off by 2⁻²⁸ of everything."""

        def outputs(self, convolution, layer, images, once=False):
            right = super().outputs(convolution, layer, images, once)
            return right * (1 + 2.0**-28)

    monkeypatch.setattr(module, "ConversionOptions", Wrong)
    report = attention_of(FUNCTIONS["layer norm"], IMAGES).report
    assert any(difference > bound for difference, bound in report.entries)
    assert not report.layers[0].passed
    assert not report.passed
    assert "FAILED" in str(report)


def test_primitives_without_a_rule_are_named():
    report = attention_of(lambda x: lax.digamma(1 + features(x) ** 2), IMAGES).report
    assert (report.entries, report.without_rule) == ((), "digamma")
    assert report.passed is None
    assert "no bound on the outputs: none for digamma" in str(report)


def test_infinities_of_both_runs_agree():
    report = attention_of(lambda x: jnp.where(x > 0, features(x), -jnp.inf), IMAGES).report
    assert report.passed
    assert 0 < report.difference < report.bound < 1e-9
    broken = attention_of(lambda x: jnp.where(x > 0, features(x), jnp.nan), IMAGES).report
    assert not broken.passed


def test_there_is_no_bound_where_it_is_not_finite():
    def function(images):  # the slope of log is infinite at 0, which both runs have exactly
        return jnp.exp(jnp.log(jnp.where(images > 0, jnp.abs(features(images)), 0)))

    report = attention_of(function, IMAGES).report
    assert report.without_rule in (
        None,
        "numbers that are not finite, or sums of too many terms for their dtype",
    )
    assert report.passed is None


def test_branches_that_the_runs_take_otherwise_have_no_bound():
    middle = float(features(IMAGES).sum())

    def function(images):
        total = features(images).sum()
        return lax.cond(total > middle, lambda x: x, lambda x: 2 * x, features(images))

    report = attention_of(function, IMAGES).report
    assert report.without_rule in (None, "cond")  # whichever way rounding falls
