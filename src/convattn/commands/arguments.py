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
    kernel: Annotated[
        Positional[Path],
        arg(metavar="KERNEL.npy", help="The kernel, [K, K, in, out] or [K, in, out]."),
    ],
    output: Annotated[
        Path | None,
        arg(
            metavar="LAYER.npz",
            help="Where to save; default: KERNEL.npz beside the kernel.",
            help_behavior_hint="",
        ),
    ] = None,
    bias: Annotated[
        Path | None, arg(metavar="FILE.npy", help="The bias, [out].", help_behavior_hint="")
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
    seed: Annotated[int, arg(help="The seed of the random image.")] = 0,
    json: Json = None,
) -> int:
    """Turn a convolution's weights into those of an attention layer.

    Saves the layer's arrays and prints how far the two differ on a random image.
    """
    from convattn.commands.convert import Conversion
    from convattn.commands.convert import convert as command

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
    return command(kernel, output, bias, conversion, seed, json)


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


def _sizes(values: Sizes, option: str) -> int | Sizes:
    if len(values) not in (1, 2) or min(values) < 1:
        raise UsageError(f"{option} got {values}, but expected one or two positive integers")
    return values[0] if len(values) == 1 else values


COMMANDS: dict[str, Callable[..., Any]] = {
    "verify": verify,
    "check": check,
    "audit": audit,
    "convert": convert,
    "ledger": ledger,
}
