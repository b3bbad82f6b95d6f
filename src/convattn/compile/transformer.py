"""A compiled vision transformer: its arrays, its logits, what its stream holds, and its report."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array
from jaxtyping import Float

from convattn.compile import sizes, stock
from convattn.compile.bound import Bound, derived_bound
from convattn.compile.box_bound import BoxBound, box_bound
from convattn.compile.evaluation import node_values
from convattn.compile.parameters import Constants
from convattn.compile.plan import Plan
from convattn.compile.stored_values import StoredValues
from convattn.extras import require
from convattn.files import write_file
from convattn.networks.weights.formats import write_safetensors
from convattn.operators.roundoff import largest_near

_AT_ONCE = 2**28  # numbers of the streams of a run, that are held at once


@dataclass(frozen=True)
class Report:
    """A vision transformer beside its network on images.

    Attributes:
        size: Of the vision transformer.
        images: How many were run.
        same_class: On how many the largest logit is the same, but for ties within the bound.
        difference: The largest of logits, between the vision transformer and the function.
        largest: The largest logit in absolute value.
        bound: What is derived, image by image, for the difference from the network as it was read,
            evaluated in float64.
        ratio: The smallest bound/difference of all images and logits; infinite where none differs.
        within: Whether every difference from that network is within its bound.
        dtype: In which the vision transformer computed.
        largest_token: √Σ x² of the values that a token held in the run, at most.
        for_training: Whether its constants are those for training, with which a class may change.
    """

    size: sizes.Size
    images: int
    same_class: int
    difference: float
    largest: float
    bound: Bound
    ratio: float
    within: bool
    dtype: str
    largest_token: float
    for_training: bool = False

    @property
    def passed(self) -> bool:
        """Whether all classes are the same, and all differences within bounds that say something.

        Where the bound is no less than the largest logit, they are at most √ε of it. With constants
        for training, whether all differences are within their bounds, and below the largest logit.
        """
        same = self.for_training or self.same_class == self.images
        return self.within and same and not self._too_far

    @property
    def _too_far(self) -> str:
        """Why the difference from the function as it runs is too large, "" if it is not."""
        if not np.isfinite(self.difference):
            return "the logits are not finite numbers"
        if self.for_training:
            near = self.difference < self.largest or not self.difference
            return "" if near else "the logits differ by at least as much as the largest"
        bound = float(self.bound.total.max())
        limit = largest_near(bound, self.largest, self.dtype)
        if self.difference <= limit:
            return ""
        if limit < bound:
            return (
                f"the bound is no less than the largest logit and says nothing: {limit:.3g} is the "
                "most that passes"
            )
        return (
            "that is the bound to the network evaluated in float64; the function as it runs is "
            "further away, so it rounds more, as where large numbers are added and taken away"
        )

    def __str__(self) -> str:
        """A few lines."""
        lines = [
            f"{self.size}",
            f"{self.same_class} of {self.images} images have the same class; the logits differ by "
            f"{self.difference:.3g} of {self.largest:.3g}",
        ]
        construction, rounding = self.bound.construction.max(), self.bound.rounding.max()
        verb = "is" if self.within else "is NOT"
        lines.append(
            f"each {verb} within its derived bound, at most {construction:.3g} by construction and "
            f"{rounding:.3g} by rounding; the nearest is {self.ratio:.3g} times smaller"
        )
        if self.within and self._too_far:
            lines.append(self._too_far)
        return "\n".join(lines)


class Feature(NamedTuple):
    """A value of the network in both.

    Attributes:
        name: `value 3` for the third that the network stores.
        blocks: How many blocks of the vision transformer have run when it is there.
        of_network: `[batch, rows, columns, channels]`, or `[batch, channels]`.
        of_transformer: The same as its stream holds it.
    """

    name: str
    blocks: int
    of_network: np.ndarray
    of_transformer: np.ndarray


@dataclass(frozen=True, eq=False)
class CompiledTransformer:
    """The parameters of a stock vision transformer, and how it compares with its network.

    Attributes:
        arrays: The state dict of `format`, in `dtype`.
        arguments: What the library's class is built with.
        format: `"timm"`, `"transformers"` or `"transformers4"`.
        dtype: Of its numbers.
        plan: Which channels, heads and blocks compute which value.
        constants: Λ, s, the sharpness of the scores, and LayerNorm's ε.
        for_training: Whether the constants are those for training.
        report: On the example's images; None where there was no example to run on.
    """

    arrays: dict[str, np.ndarray] = field(repr=False)
    arguments: dict[str, Any]
    format: str
    dtype: str
    plan: Plan = field(repr=False)
    constants: Constants
    channels_first: bool
    timm: dict[str, np.ndarray] = field(repr=False)
    for_training: bool = False
    report: Report | None = None

    def __call__(self, images: Float[Array, " batch *image"]) -> Float[Array, " batch classes"]:
        """The logits as JAX computes them, of images as the function takes them."""
        return self.streams(images).logits

    def streams(self, images: Float[Array, " batch *image"]) -> stock.Streams:
        """With what stands in the tokens before, within and after each block."""
        return self._streams(rows_first(images, self.channels_first))

    def unrolled(self, images: Float[Array, " batch *image"]) -> Float[Array, " batch classes"]:
        """The logits, its blocks one after the other instead of in a loop, as for ONNX."""
        rows = jnp.asarray(rows_first(images, self.channels_first), self.dtype)
        return stock.unrolled(self.timm, rows, self.plan.num_heads, self.constants.epsilon)

    def _streams(self, rows: Any) -> stock.Streams:
        expected = (*self.plan.network.image_size, self.plan.network.image.channels)
        if rows.shape[1:] != expected or not len(rows):
            raise ValueError(
                f"{len(rows)} images of (rows, columns, channels) {rows.shape[1:]}, but the vision "
                f"transformer is made for images of {expected[0]} × {expected[1]} pixels and "
                f"{expected[2]} channels; resize them, or compile the network for theirs"
            )
        held = jnp.asarray(rows, self.dtype)
        return stock.run(self.timm, held, self.plan.num_heads, self.constants.epsilon)

    def compared(self, function: Callable[[Any], Any], images: Any) -> Report:
        """How it compares with a function, and with its bound."""
        size, theirs = sizes.Size.of(self.plan), np.asarray(function(images))
        expected = (len(images), self.plan.network.logits.channels)
        if theirs.shape != expected:
            raise ValueError(
                f"a function whose outputs have the shape {theirs.shape}, but expected logits "
                f"[images, classes] {expected}; compare with the network that was compiled"
            )
        rows = np.asarray(rows_first(images, self.channels_first)).astype(self.dtype)
        count = max(_AT_ONCE // (size.blocks * size.tokens * size.width), 1)
        parts, largest = [], []
        for start in range(0, len(rows), count):
            streams = self._streams(rows[start : start + count])
            bound, exact, held = derived_bound(
                self.plan, self.constants, rows[start:][:count], streams
            )
            largest.append(held)
            logits = np.asarray(streams.logits, np.float64)
            parts.append((logits, exact, bound.construction, bound.rounding))
        logits, exact, *both = map(np.concatenate, zip(*parts, strict=True))
        bound, apart = Bound(*both), np.abs(logits - exact)
        return Report(
            size,
            images=len(logits),
            same_class=int(_same_class(logits, theirs, bound.total).sum()),
            difference=float(np.abs(logits - theirs).max()),
            largest=float(np.abs(theirs).max()),
            bound=bound,
            ratio=float((bound.total[apart > 0] / apart[apart > 0]).min(initial=np.inf)),
            within=bool((apart <= bound.total).all()),
            dtype=self.dtype,
            largest_token=max(largest),
            for_training=self.for_training,
        )

    def bound_on_box(
        self, lower: Float[np.ndarray, "*image"], upper: Float[np.ndarray, "*image"]
    ) -> BoxBound:
        """How far its logits can be from the network's, for every image between two.

        Args:
            lower, upper: Images as the function takes them, without the batch's axis; the pixels,
                numbers of `dtype`, are between those that stand at their places.

        Raises:
            ValueError: For what is no box of such images, and where the constants are too small
                for it.

        >>> import jax, jax.numpy as jnp
        >>> from convattn.compile import to_vision_transformer
        >>> network = lambda images: jax.nn.relu(images - 0.5).mean((1, 2))
        >>> compiled = to_vision_transformer(network, jnp.ones((1, 4, 4, 2)))
        >>> bound = compiled.bound_on_box(jnp.zeros((4, 4, 2)), jnp.ones((4, 4, 2)))
        >>> bool((bound.lower <= 0).all()), bool((bound.upper >= 0.5).all())
        (True, True)
        >>> bool((bound.total < 1e-4).all())
        True
        """
        low, high = (np.asarray(side, np.float64) for side in (lower, upper))
        if self.channels_first:
            low, high = (np.moveaxis(side, 0, -1) if side.ndim else side for side in (low, high))
        return box_bound(self.plan, self.constants, self.dtype, low, high)

    def features(self, images: Float[Array, " batch *image"]) -> list[Feature]:
        """Every value of the network beside what the vision transformer holds of it.

        The network is evaluated in float64.
        """
        rows = np.asarray(rows_first(images, self.channels_first)).astype(self.dtype)
        exact = node_values(self.plan.network, rows)
        held = StoredValues(self.plan, self.constants, self._streams(rows))
        return [
            Feature(value.name, held.blocks(value), numbers, held.after(value))
            for value, numbers in exact.items()
        ]

    def to_nnx(self) -> Any:
        """The same as `convattn.nnx.VisionTransformer`, in `dtype`.

        Raises:
            ValueError: For patches that are no squares, which it does not take.
        """
        require("flax")
        from flax import nnx

        from convattn.nnx import VisionTransformer, VisionTransformerSettings
        from convattn.nnx.vision_transformer.state_dict import load_state_dict

        plan, size = self.plan, self.plan.network.image_size
        _, channels, *patch = self.timm["patch_embed.proj.weight"].shape
        if patch[0] != patch[1]:
            raise ValueError(
                f"patches of {patch[0]} × {patch[1]} pixels, but convattn.nnx.VisionTransformer "
                "takes squares; compile with another patch_size"
            )
        settings = VisionTransformerSettings(
            depth=len(plan.blocks),
            width=plan.width,
            inner=plan.hidden,
            heads=plan.num_heads,
            head_width=plan.head_dim,
            patch_size=patch[0],
            projection="learned",
            position="absolute",
            pooling="class",
            norm_epsilon=self.constants.epsilon,
        )
        classes = plan.network.logits.channels
        shapes: Any = {"classes": classes, "image_size": size, "channels": channels}
        model = VisionTransformer(settings, **shapes, dtype=self.dtype, rngs=nnx.Rngs(0))
        load_state_dict(model, self.timm)
        return model

    def contents(self) -> bytes:
        """The arrays as safetensors, with the constructor's arguments in the metadata."""
        metadata = {"format": "pt", "library": self.format, "arguments": json.dumps(self.arguments)}
        return write_safetensors(self.arrays, metadata)

    def save(self, path: Path | str) -> None:
        """Write `contents` into a file, whole or not at all."""
        write_file(Path(path), self.contents())


def _same_class(logits: np.ndarray, theirs: np.ndarray, bound: np.ndarray) -> np.ndarray:
    """Whether the largest logit of each image is the same, or as large within the bounds."""
    rows, own = np.arange(len(logits)), logits.argmax(-1)
    near = np.minimum(2 * bound.max(-1), np.abs(theirs).max(-1) * np.sqrt(np.finfo(np.float32).eps))
    return theirs.max(-1) - theirs[rows, own] <= near


def rows_first(images: Any, channels_first: bool) -> Any:
    """Images `[batch, rows, columns, channels]`."""
    return jnp.moveaxis(jnp.asarray(images), 1, -1) if channels_first else jnp.asarray(images)
