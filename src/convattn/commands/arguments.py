"""The commands as the command line sees them: options, defaults and help.

Each function only names its options and passes them on; the work is in the module of that name,
which is imported when the command is given.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

from tyro.conf import Positional, UseAppendAction, arg

from convattn.commands.usage import UsageError

Json = Annotated[
    Path | None,
    arg(name="json", metavar="FILE", help="Write the figures as JSON.", help_behavior_hint=""),
]
Proofs = Annotated[
    Path | None,
    arg(
        metavar="DIR",
        help="Proofs <paper>/<name>.py; default: those of the checkout or wheel.",
        help_behavior_hint="",
    ),
]
Sizes = tuple[int, ...]


def verify(
    claim: Annotated[
        UseAppendAction[tuple[str, ...]],
        arg(metavar="ID", help="Only this claim, or those matching a pattern such as 'C20.*'."),
    ] = (),
    level: Annotated[
        UseAppendAction[tuple[str, ...]],
        arg(
            metavar="LEVEL",
            help="Only evidence of this level: PROVED, CERTIFIED, ENCLOSED, BOUNDED, TESTED or "
            "MEASURED; claims without any are left out.",
        ),
    ] = (),
    quick: Annotated[
        bool, arg(help="Only evidence that is marked quick.", help_behavior_hint="")
    ] = False,
    seed: Annotated[int, arg(help="The seed of everything that is drawn.")] = 0,
    jobs: Annotated[
        int | None,
        arg(
            metavar="N",
            help="Worker processes; default: one for each core. A TPU allows 1.",
            help_behavior_hint="",
        ),
    ] = None,
    timeout: Annotated[
        float | None,
        arg(
            metavar="SECONDS", help="Give each piece of evidence this long.", help_behavior_hint=""
        ),
    ] = None,
    json: Json = None,
    proofs: Proofs = None,
    certificates: Annotated[
        Path | None,
        arg(
            metavar="DIR", help="Certificates; default: the committed ones.", help_behavior_hint=""
        ),
    ] = None,
) -> int:
    """Run the evidence for the claims and print the ledger's state.

    Exits 0 if every selected claim is verified, 1 if one is not, 2 on wrong use.
    """
    from convattn.commands.verify import verify as command

    _require_seed(seed)
    return command(claim, level, quick, seed, jobs, timeout, proofs, certificates, json)


def check(
    files: Annotated[
        Positional[tuple[Path, ...]],
        arg(
            metavar="FILES",
            help="Certificates; default: all the committed ones.",
            help_behavior_hint="",
        ),
    ] = (),
    ignore_digests: Annotated[
        bool,
        arg(help="Leave the digests alone and let the mathematics convict.", help_behavior_hint=""),
    ] = False,
    json: Json = None,
) -> int:
    """Give certificates to the independent checker.

    Exits 0 if all are accepted, 1 if one is rejected, 2 on wrong use.
    """
    from convattn.commands.check import check as command

    return command(files, ignore_digests, json)


def audit(json: Json = None) -> int:
    """Show what this device's arithmetic really does."""
    from convattn.commands.audit import audit as command

    return command(json)


def convert(
    weights: Annotated[
        Positional[Path],
        arg(
            metavar="WEIGHTS",
            help="The convolution's weights: .safetensors, .npz or .npy; with --to-convolution an "
            "attention layer's, as this command writes them.",
        ),
    ],
    layer: Annotated[
        str | None,
        arg(
            metavar="NAME",
            help="The layer, such as 'stem.conv', or the kernel's own name; its bias is found "
            "beside it.",
            help_behavior_hint="",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        arg(
            aliases=["-o"],
            metavar="FILE",
            help="Where to write, .safetensors or .npz; default: WEIGHTS.attention.safetensors "
            "(or .convolution.safetensors).",
            help_behavior_hint="",
        ),
    ] = None,
    layout: Annotated[
        Literal["auto", "hwio", "oihw"],
        arg(
            help="The kernel's axes: [K, K, in, out] (hwio: Flax, Keras) or [out, in, K, K] (oihw: "
            "PyTorch); auto tells them from the name, weight or kernel."
        ),
    ] = "auto",
    bias: Annotated[
        Path | None,
        arg(metavar="FILE", help="A file with the bias, [out].", help_behavior_hint=""),
    ] = None,
    write: Annotated[
        Literal["ours", "flax", "torch"],
        arg(
            help="The layout to write: ours, flax (flax.nnx.MultiHeadAttention) or torch "
            "(torch.nn.MultiheadAttention), the latter two for one --image-size."
        ),
    ] = "ours",
    image_size: Annotated[
        Sizes | None,
        arg(
            metavar="H [W]",
            help="Pixels of the image, for all axes or for each.",
            help_behavior_hint="",
        ),
    ] = None,
    patch_size: Annotated[
        Sizes, arg(metavar="P [P]", help="Pixels of a patch, for all axes or for each.")
    ] = (1,),
    encoding: Annotated[
        Literal["bias", "quadratic", "enumerated", "scalar"],
        arg(help="The positional encoding."),
    ] = "bias",
    exact: Annotated[
        bool,
        arg(
            help="Insist on an exact layer at finite parameters (bias and scalar only).",
            help_behavior_hint="",
        ),
    ] = False,
    no_exact: Annotated[
        bool,
        arg(
            help="Take the limit construction, with one head fewer, rounded to one-hot.",
            help_behavior_hint="",
        ),
    ] = False,
    leak: Annotated[
        float, arg(help="What share of a head's attention an exact layer spreads evenly.")
    ] = 0.5,
    stride: Annotated[Sizes, arg(metavar="S [S]", help="For all axes or for each.")] = (1,),
    dilation: Annotated[Sizes, arg(metavar="D [D]", help="For all axes or for each.")] = (1,),
    groups: Annotated[int, arg(help="Groups of channels.")] = 1,
    head_dim: Annotated[
        int | None,
        arg(
            metavar="N", help="Split heads so that each has this dimension.", help_behavior_hint=""
        ),
    ] = None,
    to_convolution: Annotated[
        bool, arg(help="Go back: from attention to convolution.", help_behavior_hint="")
    ] = False,
    kernel_size: Annotated[
        Sizes | None,
        arg(
            metavar="K [K]",
            help="The size of the kernel to go back to, for all axes or for each.",
            help_behavior_hint="",
        ),
    ] = None,
    tolerance: Annotated[
        float | None,
        arg(
            metavar="R",
            help="Going back, the largest relative Frobenius distance at which to write; default: "
            "what rounding accounts for.",
            help_behavior_hint="",
        ),
    ] = None,
    seed: Annotated[int, arg(help="The seed of the random image.")] = 0,
    json: Json = None,
) -> int:
    """Turn a convolution's weights into those of an attention layer, or back.

    What would be written is run against the convolution first, and only what lies within the
    derived bound is written. Exits 0 if it was, 1 if not, 2 on wrong use.
    """
    sizes = {"--image-size": image_size, "--kernel-size": kernel_size}
    image, kernel = (
        None if value is None else _sizes(value, option) for option, value in sizes.items()
    )
    _require_seed(seed)
    if to_convolution:
        from convattn.commands.recover import recover

        forward = {
            "--bias": bias is not None,
            "--write": write != "ours",
            "--patch-size": patch_size != (1,),
            "--encoding": encoding != "bias",
            "--exact": exact,
            "--no-exact": no_exact,
            "--leak": leak != 0.5,
            "--stride": stride != (1,),
            "--dilation": dilation != (1,),
            "--groups": groups != 1,
            "--head-dim": head_dim is not None,
            "--seed": seed != 0,
        }
        if any(forward.values()):
            option = next(option for option, given in forward.items() if given)
            raise UsageError(
                f"{option} does not go with --to-convolution: the layer's file says it"
            )
        if kernel is None:
            raise UsageError("--to-convolution needs --kernel-size")
        return recover(weights, output, kernel, image, layout, layer, tolerance, json)
    from convattn.commands.convert import Conversion, Source
    from convattn.commands.convert import convert as command

    if kernel is not None or tolerance is not None:
        option = "--tolerance" if kernel is None else "--kernel-size"
        raise UsageError(f"{option} goes with --to-convolution only")
    if exact and no_exact:
        raise UsageError("--exact and --no-exact exclude each other: give one of them or neither")
    conversion = Conversion(
        patch_size=_sizes(patch_size, "--patch-size"),
        encoding=encoding,
        exact=True if exact else False if no_exact else None,
        leak=leak,
        stride=_sizes(stride, "--stride"),
        dilation=_sizes(dilation, "--dilation"),
        groups=groups,
        head_dim=head_dim,
    )
    source = Source(weights, layer, layout, bias)
    return command(source, output, write, image, conversion, seed, json)


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
    from convattn.commands.heads import Sizes as HeadSizes
    from convattn.commands.heads import heads as command
    from convattn.commands.heads import models as table

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
        kernel_size=kernel_size if sequence else _one_or_all(kernel_size),
        patch_size=_one_or_all(patch_size),
        in_channels=in_channels,
        out_channels=out_channels,
        head_dim=head_dim,
        dilation=_one_or_all(dilation),
        attention=attention,
    )
    return command(sizes, certificate, json)


def ledger(
    output: Annotated[
        Path | None,
        arg(
            metavar="FILE",
            help="Write to this file; default: standard output.",
            help_behavior_hint="",
        ),
    ] = None,
    proofs: Proofs = None,
) -> int:
    """Print the ledger as Markdown without running anything."""
    from convattn.commands.ledger import ledger as command

    return command(proofs, output)


def _require_seed(seed: int) -> None:
    if seed < 0:
        raise UsageError(f"--seed got {seed}, but expected an integer ≥ 0")


def _one_or_all(values: Sizes) -> int | Sizes:
    return values[0] if len(values) == 1 else values


def _sizes(values: Sizes, option: str) -> int | Sizes:
    if len(values) not in (1, 2) or min(values) < 1:
        raise UsageError(f"{option} got {values}, but expected one or two positive integers")
    return _one_or_all(values)


COMMANDS: dict[str, Callable[..., Any]] = {
    "verify": verify,
    "check": check,
    "audit": audit,
    "convert": convert,
    "heads": heads,
    "ledger": ledger,
}
