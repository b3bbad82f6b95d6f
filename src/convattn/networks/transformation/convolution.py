"""A convolution of a traced function, in the layout of this library.

`lax.conv_general_dilated` takes any order of axes, strides, two dilations, two kinds of groups and
any padding. Each of them is brought to images `[batch, *space, in]`, a kernel `[*K, in/groups,
out]` and a padding that adds up to the reach d(K - 1) at most:

- a dilation of the image (a transposed convolution) lays zeros between its pixels, and the
  convolution is one of that larger image;
- padding beyond the reach, and negative padding, is laid or cropped before;
- groups of the batch are groups of the channels, once the batch is split: of B groups, part b of
  the images goes through part b of the output channels.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

Pair = tuple[int, int]


@dataclass(frozen=True)
class Convolution:
    """What a traced function convolves, and how.

    Attributes:
        name: The name stack of the call, such as `"ResNet/layer1/conv"`; empty where nothing was
            named.
        image_shape: `[batch, *space, in]`, as the function has it.
        kernel_shape: `[*K, in/groups, out]`.
        dtype: Of the images and the kernel.
        parameters: Those of `lax.conv_general_dilated`.
        is_sharded: Whether an operand has an explicit sharding, which would be that of each step.
    """

    name: str
    image_shape: tuple[Any, ...]
    kernel_shape: tuple[int, ...]
    dtype: np.dtype
    parameters: Mapping[str, Any] = field(hash=False)
    is_sharded: bool = False

    @classmethod
    def of(cls, equation: Any, outer_name: str = "") -> "Convolution":
        """The convolution of an equation of a jaxpr.

        Args:
            equation: Whose primitive is `conv_general_dilated`.
            outer_name: The name stack of the equations around it.
        """
        order = equation.params["dimension_numbers"]
        images, kernel = (variable.aval for variable in equation.invars)
        name = joined(outer_name, equation)
        shape = tuple(images.shape[axis] for axis in last(order.lhs_spec))
        taps = tuple(kernel.shape[axis] for axis in _kernel_order(order.rhs_spec))
        sharded = any(
            axis is not None for operand in (images, kernel) for axis in operand.sharding.spec
        )
        return cls(name, shape, taps, images.dtype, equation.params, sharded)

    @property
    def kernel_size(self) -> tuple[int, ...]:
        """K on each axis."""
        return self.kernel_shape[:-2]

    @property
    def is_pointwise(self) -> bool:
        """Whether it mixes no pixels: K = 1 on every axis."""
        return all(size == 1 for size in self.kernel_size)

    @property
    def stride(self) -> tuple[int, ...]:
        """s on each axis."""
        return tuple(self.parameters["window_strides"])

    @property
    def dilation(self) -> tuple[int, ...]:
        """d of the kernel on each axis."""
        return tuple(self.parameters["rhs_dilation"])

    @property
    def groups(self) -> int:
        """Of channels, or of the batch."""
        parameters = self.parameters
        return parameters["feature_group_count"] * parameters["batch_group_count"]

    @property
    def padding(self) -> tuple[Pair, ...]:
        """What the layer itself pads: on each axis no more than d(K - 1) in all."""
        return tuple(
            (own, min(max(after, 0), reach - own))
            for (before, after), reach in zip(self.parameters["padding"], self._reach, strict=True)
            for own in (min(max(before, 0), reach),)
        )

    @property
    def _reach(self) -> tuple[int, ...]:
        sizes = zip(self.kernel_size, self.dilation, strict=True)
        return tuple(dilation * (size - 1) for size, dilation in sizes)

    @property
    def _beforehand(self) -> list[tuple[int, int, int]]:
        """For each axis of space what `lax.pad` lays before the layer: before, after, between."""
        return [
            (before - own_before, after - own_after, dilation - 1)
            for (before, after), (own_before, own_after), dilation in zip(
                self.parameters["padding"],
                self.padding,
                self.parameters["lhs_dilation"],
                strict=True,
            )
        ]

    @property
    def reason(self) -> str | None:
        """Why attention does not express it; None if it does."""
        axes = len(self.kernel_size)
        if axes not in (1, 2):
            return f"{axes} axes of space, where attention takes sequences and images"
        if not jnp.issubdtype(self.dtype, jnp.floating) or self.dtype.itemsize == 1:
            return f"{self.dtype.name}, where attention takes floating point of 16 bits or more"
        if self.is_sharded or self.parameters.get("out_sharding") is not None:
            return "explicit sharding"
        if 0 in self.kernel_shape:
            return f"a kernel of shape {self.kernel_shape}, which has no entries"
        sides = self.layer_image_size
        reaches = zip(sides, self._reach, self.padding, strict=True)
        if any(side < 1 or side + sum(own) <= reach for side, reach, own in reaches):
            return f"images of {sides} pixels, on which it has no outputs"
        return None

    @property
    def layer_image_size(self) -> tuple[Any, ...]:
        """The pixels of the image that the layer takes."""
        return tuple(
            (side - 1) * (between + 1) + 1 + before + after
            for side, (before, after, between) in zip(
                self.image_shape[1:-1], self._beforehand, strict=True
            )
        )

    def images(self, operand: Array) -> Array:
        """The first operand as the images of the layer, `[batch, *space, in]`."""
        images = jnp.transpose(operand, last(self.parameters["dimension_numbers"].lhs_spec))
        if any(step != (0, 0, 0) for step in self._beforehand):
            zero = jnp.zeros((), images.dtype)
            images = lax.pad(images, zero, [(0, 0, 0), *self._beforehand, (0, 0, 0)])
        parts = self.parameters["batch_group_count"]
        if parts > 1:
            images = images.reshape(parts, -1, *images.shape[1:])
            images = jnp.moveaxis(images, 0, -2)
            images = images.reshape(*images.shape[:-2], -1)
        return images.astype(self.layer_dtype)

    def kernel(self, operand: Array) -> Array:
        """The second operand as a kernel `[*K, in/groups, out]`."""
        order = _kernel_order(self.parameters["dimension_numbers"].rhs_spec)
        return jnp.transpose(operand, order).astype(self.layer_dtype)

    @property
    def layer_dtype(self) -> np.dtype:
        """Of the layer's maps: that of the result, where it is the wider one."""
        preferred = self.parameters["preferred_element_type"]
        return self.dtype if preferred is None else jnp.promote_types(self.dtype, preferred)

    def result(self, outputs: Array) -> Array:
        """The outputs of the layer, `[batch, *space, out]`, as the function expects them."""
        preferred = self.parameters["preferred_element_type"]
        order = last(self.parameters["dimension_numbers"].out_spec)
        back = tuple(int(axis) for axis in np.argsort(order))
        return jnp.transpose(outputs, back).astype(preferred or self.dtype)

    @property
    def form(self) -> tuple[Any, ...]:
        """What a layer in its place must share with it, whatever the images are."""
        order = _kernel_order(self.parameters["dimension_numbers"].rhs_spec)
        return self.kernel_shape, self.dilation, self.groups, order

    def __str__(self) -> str:
        """One line."""
        return f"{self.name or 'unnamed'}, kernel {self.kernel_shape}"


def last(spec: tuple[int, ...]) -> tuple[int, ...]:
    """The axes of batch, space and channels, from a specification of batch, channels, space.

    >>> last((0, 1, 2, 3))
    (0, 2, 3, 1)
    """
    return (spec[0], *spec[2:], spec[1])


def _kernel_order(spec: tuple[int, ...]) -> tuple[int, ...]:
    """The axes of space, in and out, from a specification of out, in, space.

    >>> _kernel_order((3, 2, 0, 1))
    (0, 1, 2, 3)
    """
    return (*spec[2:], spec[1], spec[0])


def joined(outer_name: str, equation: Any) -> str:
    """The name stack of an equation below that of those around it."""
    return "/".join(filter(None, (outer_name, str(equation.source_info.name_stack))))
