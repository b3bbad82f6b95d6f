"""The originals: certificates and evidence that are accepted as they stand."""

import copy
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from mutants.mutant import text_of

from convattn.constructions.conversion import conv_to_attention
from convattn.fast.application import apply_attention
from convattn.ledger.certificates.canonical import certificate
from convattn.ledger.certificates.equality import equality_certificate
from convattn.ledger.claim import Evidence, Level, Run
from convattn.ledger.evidence import equals_convolution, exact_convolution, whole_images
from convattn.ledger.evidence.layer_runs import equal

Certificate = dict[str, Any]
Make = Callable[[], Certificate]


def equality(
    claim: str, construction: str, kernel_size: tuple[int, ...], patch_size: int = 1, **sizes: int
) -> Make:
    """Makes the certificate of an equality."""
    statement = "The layer is the convolution."
    return lambda: equality_certificate(
        claim, statement, construction, kernel_size, patch_size, **sizes
    )


def edited(make: Make, edit: Callable[[dict[str, Any]], Any]) -> Callable[..., str]:
    """The file after an edit of the body in place, with all digests computed anew."""

    def made(monkeypatch: pytest.MonkeyPatch) -> str:
        original = make()
        body = copy.deepcopy(original["body"])
        edit(body)
        changed = text_of(
            certificate(original["claim"], original["kind"], original["statement"], body)
        )
        if changed == text_of(original):
            raise AssertionError("the edit has changed nothing")
        return changed

    return made


def amended(make: Make, **fields: Any) -> Callable[..., str]:
    """The file after fields of the body were set, with all digests computed anew."""
    return edited(make, lambda body: body.update(fields))


LIMIT_BIAS = equality("L21.theorem1", "bias", (3, 3))
LIMIT_PATCHES = equality("L21.theorem1", "bias", (3, 3), 4)
LIMIT_RECTANGLE = equality("L21.theorem1", "bias", (3, 5))
QUADRATIC = equality("C20.theorem1", "quadratic", (3, 3))
FINITE = equality("S.finite", "leaky", (3, 3))
SCALAR = equality("S.dp1", "scalar", (3, 3))
ENUMERATED = equality("S.dp2", "enumerated", (3, 3))
ABSOLUTE = equality("L21.absolute", "absolute", (3, 3))
STRIDED = equality("L21.variants", "bias", (5, 5), 4, stride=2)
SUBSAMPLED = equality("L21.variants", "bias", (3, 3), 2, stride=3)
DILATED = equality("L21.variants", "bias", (3, 3), 4, dilation=2)
FAR = equality("C20.dilation", "quadratic", (3, 3), dilation=3)
EVEN = equality("S.dp2", "enumerated", (4, 4), 2, dilation=2)


def evidence(
    kernel_size: tuple[int, ...] = (3, 3), dtype: str = "float32", **sizes: Any
) -> Callable[[], Evidence]:
    """Makes evidence on whole real images, in one dtype."""
    return lambda: equals_convolution("images", kernel_size, dtypes=(dtype,), **sizes)


def grouped() -> Evidence:
    """Three groups of one channel in and two out, each against its own exact convolution."""

    def check(run: Run) -> str:
        images = whole_images(run)
        kernel = run.rng("kernel").integers(-3, 4, (3, 3, 1, 6))
        expected = np.concatenate(
            [exact_convolution(images[..., [g]], kernel[..., 2 * g : 2 * g + 2]) for g in range(3)],
            axis=-1,
        )
        layer = conv_to_attention(
            jnp.asarray(kernel, "float32"), patch_size=4, groups=3, exact=False
        )
        return equal("float32", apply_attention(layer, jnp.asarray(images, "float32")), expected)

    return Evidence("groups", Level.BOUNDED, check)


PIXEL_LAYER = evidence()
PATCH_LAYER = evidence(patch_size=4)
EVEN_LAYER = evidence((4, 4), patch_size=2)
STRIDED_LAYER = evidence(patch_size=4, stride=2)
SUBSAMPLED_LAYER = evidence(patch_size=2, stride=3)
DILATED_LAYER = evidence(patch_size=4, dilation=2)
QUADRATIC_LAYER = evidence(patch_size=4, encoding="quadratic")
FAR_QUADRATIC_LAYER = evidence((3,), "bfloat16", encoding="quadratic", dilation=18)
ENUMERATED_LAYER = evidence(patch_size=4, encoding="enumerated")
NARROW_LAYER = evidence(patch_size=4, head_dim=16)
FINITE_LAYER = evidence(dtype="float64", patch_size=4, exact=True)
FINITE_LAYER_FLOAT32 = evidence(patch_size=4, exact=True)
SCALAR_LAYER = evidence((3,), "float64", encoding="scalar", exact=True)
