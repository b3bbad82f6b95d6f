"""Slips about the tokens: patches, softmax, sums, biases, groups. Judged on images."""

import jax
import jax.numpy as jnp
import pytest
from mutants import subjects
from mutants.mutant import wrong_layer
from mutants.plants import DIFFER, EXCEED, change_result, in_application, in_dense

from convattn.constructions import conversion


def reordered(order: tuple[int, ...]):
    """Patches whose (row, column, channel) are flattened in another order."""

    def patchify(right, images, patch_size):
        tokens = right(images, patch_size)
        grid, channels = tokens.shape[:-1], images.shape[-1]
        parts = tokens.reshape(*grid, *patch_size, channels)
        return parts.transpose(0, 1, 2, *(3 + axis for axis in order)).reshape(*grid, -1)

    return in_application("patchify", patchify)


def every_pth_pixel(right, images, patch_size):
    """Patches of pixels that lie a whole grid apart."""
    (rows, columns), (batch, height, width, channels) = patch_size, images.shape
    grid = (height // rows, width // columns)
    parts = images.reshape(batch, rows, grid[0], columns, grid[1], channels)
    return parts.transpose(0, 2, 4, 1, 3, 5).reshape(batch, *grid, -1)


def interleaved_groups(kernel, groups):
    """Give output channel j to group j mod g; the groups' outputs lie one after the other."""
    *taps, width, out = kernel.shape
    group_of = jnp.arange(out) % groups
    dense = jnp.zeros((*taps, groups, width, out), kernel.dtype)
    dense = dense.at[..., group_of, :, jnp.arange(out)].set(jnp.moveaxis(kernel, -1, 0))
    return dense.reshape(*taps, groups * width, out)


def plant_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversion, "expand_groups", interleaved_groups)


def token_bias(make):
    """Another bias of a patch, made from the kernel's bias and the number of pixels."""

    def plant(monkeypatch: pytest.MonkeyPatch) -> None:
        right = conversion.token_bias
        monkeypatch.setattr(
            conversion,
            "token_bias",
            lambda bias, sizes: make(bias, right(bias, sizes).size // bias.size),
        )

    return plant


MUTANTS = (
    wrong_layer(
        "patch-column-major",
        "The pixels of a patch are flattened column by column.",
        subjects.PATCH_LAYER,
        reordered((1, 0, 2)),
        DIFFER,
    ),
    wrong_layer(
        "patch-channels-first",
        "The channels of a patch are flattened first.",
        subjects.PATCH_LAYER,
        reordered((2, 0, 1)),
        DIFFER,
    ),
    wrong_layer(
        "patch-of-distant-pixels",
        "A reshape without its transpose gathers pixels that lie a whole grid apart.",
        subjects.PATCH_LAYER,
        in_application("patchify", every_pth_pixel),
        DIFFER,
    ),
    wrong_layer(
        "softmax-over-queries",
        "Softmax runs over the queries.",
        subjects.PATCH_LAYER,
        in_dense("attention_weights", lambda right, s: jax.nn.softmax(s, axis=-2)),
        DIFFER,
    ),
    wrong_layer(
        "softmax-over-queries-leaky",
        "The same at finite parameters, where no row sums to one any more.",
        subjects.FINITE_LAYER,
        in_dense("attention_weights", lambda right, s: jax.nn.softmax(s, axis=-2)),
        EXCEED,
    ),
    wrong_layer(
        "weights-in-float32",
        "The products run in a narrower type than the bound counts on.",
        subjects.FINITE_LAYER,
        in_dense("attention_weights", lambda right, s: right(s).astype("float32").astype(s.dtype)),
        EXCEED,
    ),
    wrong_layer(
        "bias-per-token",
        "The bias is added once a patch, to its first pixel.",
        subjects.PATCH_LAYER,
        token_bias(lambda bias, pixels: jnp.pad(bias, (0, (pixels - 1) * bias.size))),
        DIFFER,
    ),
    wrong_layer(
        "bias-channels-first",
        "The biases of a patch are laid out channel by channel.",
        subjects.PATCH_LAYER,
        token_bias(lambda bias, pixels: jnp.repeat(bias, pixels)),
        DIFFER,
    ),
    wrong_layer(
        "bias-once-a-head",
        "Every head adds the bias.",
        subjects.PATCH_LAYER,
        change_result(conversion, "token_bias", lambda bias: 9 * bias),
        DIFFER,
    ),
    wrong_layer(
        "groups-interleaved",
        "Output channel j belongs to group j mod g.",
        subjects.grouped,
        plant_groups,
        DIFFER,
    ),
)
