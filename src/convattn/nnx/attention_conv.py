"""`AttentionConv`: attention on pixels, with the arguments and the call of `nnx.Conv`.

The heads are those of S.finite, T relative biases and a uniform one, or the T one-hot heads of the
limit form. A padding is a filled ring (S.pad). With groups the attention is the same in all of them
and each group of channels has its own maps `[heads, in/groups, out/groups]`, so that a depthwise
layer holds as many numbers as its kernel has, and one head's more.
"""

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import Array
from jax.typing import DTypeLike

from convattn.constructions.conversion import conv_to_attention
from convattn.encodings.bias import BiasEncoding
from convattn.encodings.layer import AttentionLayer
from convattn.fast.grouped import grouped_attention
from convattn.fast.selection import BACK_ENDS
from convattn.networks.recovered_kernel import another_size, recovered_kernel, recovery_size
from convattn.networks.transformation.contents import SCOPE
from convattn.networks.transformation.report import largest
from convattn.nnx.conv_arguments import check_conv, flax_padding, hashable, refuse
from convattn.operators.arrays import as_array, named_arguments
from convattn.operators.convolution import layout_hint
from convattn.operators.integers import as_integer, per_axis
from convattn.operators.kernel_layout import warns_of_layout

NO_KERNEL = (
    "AttentionConv has no kernel, but the model reads or writes one; leave this layer out with "
    "where=, or convert the model before its kernels are computed"
)
# The options of a convolution, but for those that a call reads.
FIXED = {
    *inspect.signature(nnx.Conv.__init__).parameters,
    "kernel_shape",
    "offsets",
    "ring",
    "filled",
    "causal",
}
FIXED -= {"self", "dtype", "precision"}
KERNEL_INIT, BIAS_INIT = nnx.initializers.lecun_normal(), nnx.initializers.zeros_init()


class RecoveredConv(NamedTuple):
    """A convolution, and how far the layer is from it.

    Attributes:
        conv: `nnx.Conv`.
        distance: The largest difference of the outputs on an image of random integers from 0 to 7,
            relative to the largest output of the layer; of one that was not trained, rounding.
            The image has another size than that on which the kernel was fitted.
        uniform: The part that every output takes from the mean of the whole image, relative to the
            kernel, in the Frobenius norm: zero up to rounding while the uniform head of an exact
            layer cancels that of the others.
        image_size: The pixels of that image.
    """

    conv: nnx.Conv
    distance: float
    uniform: float
    image_size: tuple[int, ...]


class AttentionConv(nnx.Module):
    """Multi-head self-attention that starts as a convolution, for `nnx.Conv`.

    Args:
        in_features, out_features, kernel_size, strides: As for `nnx.Conv`. One or two spatial axes.
        padding: As for `nnx.Conv`; `"SAME"` means what it means there.
        kernel_dilation, feature_group_count, use_bias, dtype, param_dtype, precision, kernel_init,
            bias_init: As for `nnx.Conv`.
        form: `"exact"`, at finite parameters (S.finite), or `"limit"`, one-hot heads.
        uniform_weight: ε in (0, 1), the share of each head that attends uniformly, for the exact
            form.
        head_dim: The width of every head; wider maps are split over several heads.
        backend: As `apply_attention` takes it.
        causal: Mask the keys after a query's own, with `padding="CAUSAL"`, as `conv_to_attention`
            does.
        input_dilation, mask: Refused: attention reads each token of the image, and all of them.
        border: As for `conv_to_attention`, but `"register"` is refused.

    Attributes:
        scores: `[heads, offsets]`, the biases; in units of M(N) for the exact form.
        uniform_weight_logit: log(ε/(1 - ε)), so that training cannot leave (0, 1); None in the
            limit form.
            With `"CAUSAL"`, but without `causal=True`, a layer at finite scores attends to what
            follows as well, and takes it back up to rounding; the limit form gives it no weight (a
            NaN there still spreads).
        value: `[heads, in/groups, head_dim]` or None.
        output: `[heads, in/groups or head_dim, out]`.
        bias: `[out]` or None.

    Raises:
        ValueError: For what `conv_to_attention` refuses, for three axes, and for the refused ones.

    >>> layer = AttentionConv(3, 8, (3, 3), strides=2, rngs=nnx.Rngs(0))
    >>> layer(jnp.ones((1, 8, 7, 3))).shape, layer.heads
    ((1, 4, 4, 8), 10)
    """

    @named_arguments
    def __init__(
        self,
        in_features: int,
        out_features: int,
        kernel_size: int | Sequence[int],
        strides: int | Sequence[int] | None = 1,
        *,
        padding: Any = "SAME",
        input_dilation: int | Sequence[int] | None = 1,
        kernel_dilation: int | Sequence[int] | None = 1,
        feature_group_count: int = 1,
        use_bias: bool = True,
        mask: None = None,
        dtype: DTypeLike | None = None,
        param_dtype: DTypeLike = jnp.float32,
        precision: Any = None,
        kernel_init: Callable[..., Array] = KERNEL_INIT,
        bias_init: Callable[..., Array] = BIAS_INIT,
        form: str = "exact",
        uniform_weight: float = 0.5,
        head_dim: int | None = None,
        backend: str = "auto",
        border: str = "zeros",
        causal: bool = False,
        rngs: nnx.Rngs,
    ) -> None:
        if not hasattr(rngs, "params"):
            raise ValueError(f"rngs={rngs!r}, but expected nnx.Rngs(seed)")
        size = tuple(kernel_size) if isinstance(kernel_size, Sequence) else (kernel_size,)
        axes = len(size)
        refuse(input_dilation, mask, axes)
        if border != "zeros":
            raise ValueError(
                f"border={border!r}, but expected 'zeros': this module has a ring; for a register "
                "take conv_to_attention(kernel, border='register') and apply_attention"
            )
        self.kernel_size = per_axis(size, axes, "kernel_size")
        self.strides = per_axis(1 if strides is None else strides, axes, "strides")
        spread = 1 if kernel_dilation is None else kernel_dilation
        self.kernel_dilation = per_axis(spread, axes, "kernel_dilation")
        self.padding = hashable(padding)
        self.in_features = as_integer(in_features, "in_features", 1)
        self.out_features = as_integer(out_features, "out_features", 1)
        groups = as_integer(feature_group_count, "feature_group_count", 1)
        if self.in_features % groups or self.out_features % groups:
            raise ValueError(
                f"in_features={in_features} and out_features={out_features}, but expected "
                f"multiples of feature_group_count={groups}"
            )
        self.feature_group_count = groups
        self.dtype, self.precision, self.backend = dtype, precision, backend
        shape = (*self.kernel_size, self.in_features // groups, self.out_features)
        layer = conv_to_attention(
            kernel_init(rngs.params(), shape, param_dtype),
            bias_init(rngs.params(), shape[-1:], param_dtype) if use_bias else None,
            form=form,
            uniform_weight=uniform_weight,
            head_dim=head_dim,
            stride=self.strides,
            dilation=self.kernel_dilation,
            padding=flax_padding(
                self.padding, self.kernel_size, self.kernel_dilation, self.strides
            ),
            causal=causal,
        )
        encoding = layer.encoding
        assert isinstance(encoding, BiasEncoding)
        self.offsets, self.ring, self.filled = encoding.offsets, layer.ring, layer.padding
        self.causal = causal
        self.scores = nnx.Param(encoding.values)
        weight = encoding.uniform_weight
        logit = None if weight is None else nnx.Param(jax.scipy.special.logit(weight))
        self.uniform_weight_logit = logit
        self.value = None if layer.value is None else nnx.Param(layer.value)
        self.output = nnx.Param(layer.output)
        self.bias = None if layer.bias is None else nnx.Param(layer.bias)

    @classmethod
    @partial(warns_of_layout, position=1)
    def from_kernel(cls, kernel: Any, bias: Any = None, **options: Any) -> "AttentionConv":
        """The layer that is the convolution with this kernel.

        Args:
            kernel: `[K_1, K_2, in/groups, out]`, or `[K, in/groups, out]`.
            bias: `[out]` or none.
            options: strides, padding, kernel_dilation, feature_group_count, dtype, precision,
                form, uniform_weight, head_dim, backend and causal, as above.

        >>> layer = AttentionConv.from_kernel(jnp.ones((3, 1, 1)), padding="CIRCULAR")
        >>> layer(jnp.array([[[1.0], [2.0], [4.0], [8.0]]])).ravel().round(4).tolist()
        [11.0, 7.0, 14.0, 13.0]
        """
        return cls._of_kernel(kernel, bias, **options)

    @classmethod
    def _of_kernel(cls, kernel: Any, bias: Any, **options: Any) -> "AttentionConv":
        kernel = as_array(kernel, "kernel")
        if kernel.ndim < 2:
            raise ValueError(
                f"kernel.shape={kernel.shape}, but expected one or two spatial axes, in and out"
            )
        if not jnp.issubdtype(kernel.dtype, jnp.inexact):
            kernel = kernel.astype(jnp.float32)
        groups = as_integer(options.get("feature_group_count", 1), "feature_group_count", 1)
        return cls(
            kernel.shape[-2] * groups,
            kernel.shape[-1],
            kernel.shape[:-2],
            use_bias=bias is not None,
            param_dtype=kernel.dtype,
            kernel_init=lambda *_: kernel,
            bias_init=lambda *_: as_array(bias, "bias"),
            rngs=nnx.Rngs(0),
            **options,
        )

    @classmethod
    def from_conv(cls, conv: nnx.Conv, **options: Any) -> "AttentionConv":
        """The layer that is this convolution.

        Args:
            conv: Any but one with input_dilation, a mask, three axes or a convolution of its own.
                Of a module that is scanned or vmapped it may hold those of all steps, stacked on
                its first axes; so does the layer then. Where the shapes of kernel and bias do not
                tell these axes from others, `conv.kernel.set_metadata(stack_axis=0)` says so.
            options: form, uniform_weight, head_dim, backend and causal, as above.

        Raises:
            ValueError: For another, saying which it is.
        """
        check_conv(conv)
        if conv.kernel[...].ndim > len(conv.kernel_size) + 2:
            of_step: Callable[..., AttentionConv] = partial(cls.from_conv, **options)
            stacked: AttentionConv = nnx.vmap(of_step)(conv)
            return stacked
        layer = cls._of_kernel(
            conv.kernel[...],
            None if conv.bias is None else conv.bias[...],
            strides=conv.strides,
            padding=conv.padding,
            kernel_dilation=conv.kernel_dilation,
            feature_group_count=conv.feature_group_count,
            dtype=conv.dtype,
            precision=conv.precision,
            **options,
        )
        kind = type(conv.kernel)  # a subclass of nnx.Param, such as a filter of what is trained
        for name in ("scores", "uniform_weight_logit", "value", "output"):
            parameter = getattr(layer, name)
            setattr(layer, name, None if parameter is None else kind(parameter[...]))
        if conv.bias is not None and layer.bias is not None:
            layer.bias = type(conv.bias)(layer.bias[...])
        return layer

    @property
    def heads(self) -> int:
        """The number of heads, of each group."""
        return self.scores[...].shape[-2]

    @property
    def uniform_weight(self) -> Array | None:
        """ε, or None in the limit form; whatever its logit is, it stays a number in (0, 1)."""
        if self.uniform_weight_logit is None:
            return None
        logit = self.uniform_weight_logit[...]
        limits = jnp.finfo(logit.dtype)
        return jnp.clip(jax.nn.sigmoid(logit), limits.tiny / limits.eps, 1 - limits.eps)

    def group_layer(self) -> AttentionLayer:
        """The layer of one group of channels, to all output channels, without the bias."""
        return AttentionLayer(
            encoding=BiasEncoding(self.scores[...], self.uniform_weight, self.offsets),
            value=None if self.value is None else self.value[...],
            output=self.output[...],
            patch_size=(1,) * len(self.strides),
            stride=self.strides,
            dilation=self.kernel_dilation,
            ring=self.ring,
            padding=self.filled,
            causal=self.causal,
        )

    def __setattr__(self, name: str, value: Any) -> None:
        """Set parameters, `dtype`, `precision`, `backend`, and what is no option of a convolution.

        Raises:
            AttributeError: For other options once the layer is made: its heads are made for them.
            ValueError: For a `dtype` or `backend` that there is not.
        """
        if name in FIXED and "bias" in vars(self):
            raise AttributeError(
                f"{name} of an AttentionConv cannot be set, as its heads are made for one; make "
                "the layer anew, or set it on the convolution before that becomes attention"
            )
        if name == "dtype" and value is not None and not jnp.issubdtype(value, jnp.inexact):
            raise ValueError(f"dtype={value}, but expected a float; leave it out for the inputs'")
        if name == "backend" and value not in ("auto", *BACK_ENDS):
            raise ValueError(f"backend={value!r}, but expected one of auto, {', '.join(BACK_ENDS)}")
        super().__setattr__(name, value)

    @property
    def kernel(self) -> Any:
        """Not there: a model that reads or writes it must keep its convolution.

        Raises:
            AttributeError: Always.
        """
        raise AttributeError(NO_KERNEL)

    @kernel.setter
    def kernel(self, value: Any) -> None:
        raise AttributeError(NO_KERNEL)

    @jax.named_scope(SCOPE)
    def __call__(self, inputs: Array, out_sharding: Any = None) -> Array:
        """Attend.

        Args:
            inputs: `[…, height, width, in]` or `[…, length, in]`; any number of batch axes.
            out_sharding: As for `nnx.Conv`: how the output is sharded, on a mesh of explicit axes.

        Returns:
            `[…, height', width', out]`.

        Raises:
            ValueError: For inputs of another rank or number of channels.
        """
        axes, inputs = len(self.strides), as_array(inputs, "inputs")
        if jnp.ndim(inputs) < axes + 1 or jnp.shape(inputs)[-1] != self.in_features:
            groups = self.feature_group_count
            kernel = (*self.kernel_size, self.in_features // groups, self.out_features)
            hint = layout_hint(inputs.shape, kernel, groups)
            raise ValueError(
                f"inputs.shape={jnp.shape(inputs)}, but expected {axes} spatial axes and then "
                f"{self.in_features} channels" + (hint or "; move the channels to the last axis")
            )
        layer = self.group_layer()
        bias = None if self.bias is None else self.bias[...]
        inputs, layer, bias = self._cast(inputs, layer, bias)
        batch = inputs.shape[: -axes - 1]
        images = inputs.reshape(math.prod(batch), *inputs.shape[len(batch) :])
        result = grouped_attention(
            layer, images, self.feature_group_count, self.backend, self.precision
        )
        if bias is not None:
            result = result + jnp.expand_dims(bias, tuple(range(result.ndim - 1)))
        result = result.reshape(*batch, *result.shape[1:])
        return result if out_sharding is None else jax.sharding.reshard(result, out_sharding)

    def _cast(
        self, inputs: Array, layer: AttentionLayer, bias: Array | None
    ) -> tuple[Array, AttentionLayer, Array | None]:
        """Everything in `dtype`, or in what inputs and parameters promote to."""
        maps = [array for array in (layer.value, layer.output, bias) if array is not None]
        dtype = self.dtype or jnp.result_type(inputs, *maps)

        def cast(array: Array | None) -> Any:
            return None if array is None else jnp.asarray(array, dtype)

        layer = replace(layer, value=cast(layer.value), output=cast(layer.output))
        return cast(inputs), layer, cast(bias)

    def to_conv(self, image_size: Sequence[int] | None = None) -> RecoveredConv:
        """The nearest `nnx.Conv`, tap by tap the mean over the pixels of an image.

        Args:
            image_size: Its pixels on each axis; by default four times the kernel and more.

        >>> kernel = jnp.arange(18.0).reshape(3, 3, 1, 2)
        >>> conv, distance, *_ = AttentionConv.from_kernel(kernel, form="limit").to_conv()
        >>> bool((conv.kernel[...] == kernel).all()), distance < 1e-6
        (True, True)
        """
        if self.scores[...].ndim > 2:
            return self._stacked_conv(image_size)
        layer = self.group_layer()
        sides = recovery_size(layer, self.kernel_size, image_size)
        kernel, uniform, _ = recovered_kernel(layer, self.kernel_size, sides)
        conv = nnx.Conv(
            self.in_features,
            self.out_features,
            self.kernel_size,
            self.strides,
            padding=self.padding,
            kernel_dilation=self.kernel_dilation,
            feature_group_count=self.feature_group_count,
            use_bias=self.bias is not None,
            dtype=self.dtype,
            param_dtype=self.output[...].dtype,
            precision=self.precision,
            rngs=nnx.Rngs(0),
        )
        conv.kernel = type(self.output)(kernel.astype(self.output[...].dtype))
        conv.bias = None if self.bias is None else type(self.bias)(self.bias[...])
        dtype = self.dtype or self.output[...].dtype
        other = another_size(layer, self.kernel_size, image_size or sides)
        image = jax.random.randint(jax.random.key(0), (1, *other, self.in_features), 0, 8)
        distance = relative_difference(self, conv, image.astype(dtype))
        return RecoveredConv(conv, distance, float(uniform), other)

    def _stacked_conv(self, image_size: Sequence[int] | None) -> RecoveredConv:
        """That of each step of a module that is scanned or vmapped, stacked as they were."""
        graph, state = nnx.split(self)

        def of_step(step: int) -> RecoveredConv:
            layer = nnx.merge(graph, jax.tree.map(lambda array: array[step], state))
            return layer.to_conv(image_size)

        steps = [*map(of_step, range(len(self.scores[...])))]
        convs = [nnx.split(step.conv) for step in steps]
        stacked = jax.tree.map(lambda *arrays: jnp.stack(arrays), *(state for _, state in convs))
        return RecoveredConv(
            nnx.merge(convs[0][0], stacked),
            float(np.max([step.distance for step in steps])),
            float(np.max([step.uniform for step in steps])),
            steps[0].image_size,
        )


def relative_difference(layer: AttentionConv, conv: nnx.Conv, inputs: Array) -> float:
    """The largest difference of the outputs, relative to the largest of the layer's."""
    outputs = layer(inputs)
    magnitude, gap = largest([outputs]), largest([outputs - conv(inputs)])
    return gap / magnitude if magnitude > 0 else gap
