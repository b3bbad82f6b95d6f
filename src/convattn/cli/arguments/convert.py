"""``convattn convert``: its options."""

from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from convattn.cli.arguments.shared import (
    Json,
    Sizes,
    require_seed,
    sizes_of,
)
from convattn.cli.usage import UsageError


def convert(
    weights: Annotated[
        Positional[Path | None],
        arg(
            metavar="WEIGHTS",
            help="The convolution's weights: .safetensors, .npz or .npy; with --to-convolution an "
            "attention layer's, as this command writes them.",
            help_behavior_hint="",
        ),
    ] = None,
    network: Annotated[
        Path | None,
        arg(
            metavar="RUN_DIR",
            help="In place of WEIGHTS: a finished run of a ResNet, all of whose convolutions are "
            "converted; goes with --output, --leak and --json.",
            help_behavior_hint="",
        ),
    ] = None,
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
        None if value is None else sizes_of(value, option) for option, value in sizes.items()
    )
    require_seed(seed)
    if network is not None:
        from convattn.cli.network import convert_network

        single = {
            "WEIGHTS": weights is not None,
            "--layer": layer is not None,
            "--layout": layout != "auto",
            "--bias": bias is not None,
            "--write": write != "ours",
            "--image-size": image_size is not None,
            "--patch-size": patch_size != (1,),
            "--encoding": encoding != "bias",
            "--no-exact": no_exact,
            "--stride": stride != (1,),
            "--dilation": dilation != (1,),
            "--groups": groups != 1,
            "--head-dim": head_dim is not None,
            "--to-convolution": to_convolution,
            "--kernel-size": kernel_size is not None,
            "--tolerance": tolerance is not None,
            "--seed": seed != 0,
        }
        for option in (option for option, given in single.items() if given):
            raise UsageError(
                f"{option} does not go with --network, which converts every layer of a run; it "
                "takes --output, --leak and --json"
            )
        return convert_network(network, output, leak, json)
    if weights is None:
        raise UsageError("expected WEIGHTS, a file, or --network, the folder of a run")
    if to_convolution:
        from convattn.cli.recover import recover

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
    from convattn.cli.convert import Conversion, Source
    from convattn.cli.convert import convert as command

    if kernel is not None or tolerance is not None:
        option = "--tolerance" if kernel is None else "--kernel-size"
        raise UsageError(f"{option} goes with --to-convolution only")
    if exact and no_exact:
        raise UsageError("--exact and --no-exact exclude each other: give one of them or neither")
    conversion = Conversion(
        patch_size=sizes_of(patch_size, "--patch-size"),
        encoding=encoding,
        exact=True if exact else False if no_exact else None,
        leak=leak,
        stride=sizes_of(stride, "--stride"),
        dilation=sizes_of(dilation, "--dilation"),
        groups=groups,
        head_dim=head_dim,
    )
    source = Source(weights, layer, layout, bias)
    return command(source, output, write, image, conversion, seed, json)
