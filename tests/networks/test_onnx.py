import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import convattn as ca

pytest.importorskip("jax2onnx")
onnxruntime = pytest.importorskip("onnxruntime")
nnx = pytest.importorskip("flax.nnx")

from convattn.networks import onnx  # noqa: E402

IMAGES = jax.random.normal(jax.random.key(0), (2, 8, 7, 3), "float32")
CONVOLUTIONS = {
    "strided": {"strides": 2},
    "circular": {"padding": "CIRCULAR"},
    "depthwise": {"feature_group_count": 3},
}


def outputs_of(path, *arrays):
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_inputs()]
    return session.run(None, dict(zip(names, map(np.asarray, arrays), strict=True)))


@pytest.mark.parametrize("kind", CONVOLUTIONS)
@pytest.mark.parametrize("backend", ["shift", "dense"])
def test_attention_is_written_and_runs(kind, backend, tmp_path) -> None:
    conv = nnx.Conv(3, 6, (3, 3), param_dtype="float32", rngs=nnx.Rngs(0), **CONVOLUTIONS[kind])
    path = tmp_path / "attention.onnx"
    layers, apply, _ = ca.attention_of(conv, IMAGES, backend=backend)
    report = onnx.write_onnx(lambda images: apply(layers, images), IMAGES, path)
    assert report.difference <= 1e-5 * report.largest
    assert ("Conv" in report.operators) == (backend == "shift")
    assert "Exp" in report.operators  # of the softmax: attention was written, not the convolution
    (outputs,) = outputs_of(path, IMAGES)
    assert abs(outputs - conv(IMAGES)).max() <= 1e-5 * abs(outputs).max()


def test_several_inputs_and_outputs(tmp_path) -> None:
    def function(left, right):
        return {"product": left @ right, "rest": (left + 1, right.sum())}

    left, right = IMAGES[0, :7, :, 0], IMAGES[1, :7, :, 1]
    onnx.write_onnx(function, (left, right), tmp_path / "f.onnx")
    for one, other in zip(
        outputs_of(tmp_path / "f.onnx", left, right),
        jax.tree.leaves(function(left, right)),
        strict=True,
    ):
        assert abs(one - other).max() <= 1e-5 * abs(other).max()


def test_a_reshape_that_transposes_is_written_right(tmp_path) -> None:
    def function(x):
        return lax.reshape(jnp.sin(x), (3, 112), dimensions=(3, 0, 2, 1))

    report = onnx.write_onnx(function, IMAGES, tmp_path / "f.onnx")
    assert "Transpose" in report.operators


@pytest.mark.parametrize("axes", [(1, 2), (2, 3)])
def test_max_pooling_is_written(axes, tmp_path) -> None:
    window, stride = ([size if axis in axes else 1 for axis in range(4)] for size in (3, 2))

    def function(images):
        return lax.reduce_window(images, -jnp.inf, lax.max, window, stride, "SAME")

    assert "MaxPool" in onnx.write_onnx(function, IMAGES, tmp_path / "f.onnx").operators
    (outputs,) = outputs_of(tmp_path / "f.onnx", IMAGES)
    assert (outputs == np.asarray(function(IMAGES))).all()


def test_a_missing_primitive_is_named_and_nothing_is_written(tmp_path) -> None:
    def function(x):
        return jax.pure_callback(lambda value: value, x, x)

    with pytest.raises(ValueError, match="the primitive pure_callback"):
        onnx.write_onnx(function, IMAGES, tmp_path / "f.onnx")
    assert not (tmp_path / "f.onnx").exists()


@pytest.mark.parametrize("example", [[IMAGES], {"images": IMAGES}])
def test_other_examples_are_refused(example, tmp_path) -> None:
    with pytest.raises(ValueError, match="but expected an array, or a tuple of arrays"):
        onnx.write_onnx(jnp.sin, example, tmp_path / "f.onnx")
    with pytest.raises(ValueError, match="outside jit"):
        jax.jit(lambda images: onnx.write_onnx(jnp.sin, images, tmp_path / "f.onnx"))(IMAGES)


def test_a_small_output_is_compared_by_itself_and_a_wrong_one_not_written(
    tmp_path, monkeypatch
) -> None:
    run = onnx._run
    monkeypatch.setattr(onnx, "_run", lambda *args: [run(*args)[0], 1.001 * run(*args)[1]])
    with pytest.raises(ValueError, match="an output of onnxruntime differs by"):
        onnx.write_onnx(lambda x: (1e8 * x, jnp.sin(x)), IMAGES, tmp_path / "f.onnx")
    assert not (tmp_path / "f.onnx").exists()


def test_jax_stays_as_it_is(tmp_path):
    onnx.write_onnx(jnp.sin, jnp.ones(3), tmp_path / "sine.onnx")
    assert jnp.cumsum(jnp.ones((2, 3)), 1).tolist() == [[1.0, 2.0, 3.0]] * 2
