"""``convattn heads``: its options."""

from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import arg

from convattn.cli.arguments.shared import (
    Json,
    Sizes,
    one_or_all,
)
from convattn.cli.usage import UsageError


def heads(
    kernel_size: Annotated[
        Sizes,
        arg(
            metavar="K [K]",
            help="Odd or even, up to 4096; one number is a square kernel on two axes.",
        ),
    ] = (3,),
    patch_size: Annotated[
        Sizes, arg(metavar="P [P]", help="Pixels of a patch, for all axes or for each.")
    ] = (1,),
    in_channels: Annotated[int, arg(help="Channels of the image.")] = 1,
    out_channels: Annotated[int, arg(help="Channels of the convolution.")] = 1,
    head_dim: Annotated[
        int | None,
        arg(
            metavar="N",
            help="The width of a head's value map; default: what a map needs.",
            help_behavior_hint="",
        ),
    ] = None,
    dilation: Annotated[Sizes, arg(metavar="D [D]", help="For all axes or for each.")] = (1,),
    attention: Annotated[
        Literal["per_kernel", "shared"],
        arg(help="Whether attention may depend on the kernel, or one pattern serves all."),
    ] = "per_kernel",
    sequence: Annotated[bool, arg(help="One axis instead of two.", help_behavior_hint="")] = False,
    models: Annotated[
        bool,
        arg(
            help="The table of vision transformers instead, for K = 3, 5, 7 or --kernel-size.",
            help_behavior_hint="",
        ),
    ] = False,
    certificate: Annotated[
        Path | None,
        arg(
            metavar="FILE",
            help="Write a certificate of S.heads' count, which is necessary in the limit for any "
            "head dimension, and check it.",
            help_behavior_hint="",
        ),
    ] = None,
    json: Json = None,
) -> int:
    """Count the attention heads that a convolution takes, for the worst kernel.

    Prints how many are necessary and how many suffice, in the limit and exactly, each with the
    claim that proves it.
    """
    from convattn.cli.heads import Sizes as HeadSizes
    from convattn.cli.heads import heads as command
    from convattn.cli.heads import models as table

    if models:
        given = (patch_size, in_channels, out_channels, head_dim, dilation, attention, sequence)
        if given != ((1,), 1, 1, None, (1,), "per_kernel", False) or certificate is not None:
            raise UsageError(
                "--models takes sizes from the models: give it --kernel-size and --json alone"
            )
        return table((3, 5, 7) if kernel_size == (3,) else kernel_size, json)
    if sequence and len(kernel_size) != 1:
        words = " ".join(map(str, kernel_size))
        raise UsageError(f"--sequence takes one --kernel-size, but got {words}")
    sizes = HeadSizes(
        kernel_size=kernel_size if sequence else one_or_all(kernel_size),
        patch_size=one_or_all(patch_size),
        in_channels=in_channels,
        out_channels=out_channels,
        head_dim=head_dim,
        dilation=one_or_all(dilation),
        attention=attention,
    )
    return command(sizes, certificate, json)
