"""Architectures of torchvision and timm, all their convolutions as attention, against PyTorch.

    python experiments/frameworks.py [NAME …] [--json FILE]

Each has random weights and statistics and is run in float64 on two images of noise, in PyTorch, by
`convattn.with_attention` of the function of JAX that torchax makes of it, and by
`convattn.torch.to_attention`, which stays in PyTorch. Both doors are compared with PyTorch's own
outputs, relative to the largest of them. Needs `pip install 'convattn[torch]'`.
"""

import argparse
import json
import math
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

LIMIT = 1e-10  # of the largest output, in float64
BATCH = 2


@dataclass(frozen=True)
class Architecture:
    """A network, and the images that it is run on.

    Attributes:
        name: As `convattn.torch.network` takes it.
        size: Pixels on both axes.
        options: What the library's builder takes beside, such as the size of a ViT's images.
        limit: Of the difference of outputs, relative to the largest.
    """

    name: str
    size: int = 64
    options: dict[str, Any] = field(default_factory=dict)
    limit: float = LIMIT


ARCHITECTURES = (
    Architecture("torchvision/alexnet"),
    Architecture("torchvision/vgg11_bn"),
    Architecture("torchvision/resnet18"),
    Architecture("torchvision/resnet50"),
    Architecture("torchvision/resnext50_32x4d"),
    Architecture("torchvision/wide_resnet50_2"),
    Architecture("torchvision/regnet_y_400mf"),
    Architecture("torchvision/densenet121"),
    Architecture("torchvision/mobilenet_v2"),
    Architecture("torchvision/mobilenet_v3_small"),
    Architecture("torchvision/efficientnet_b0"),
    Architecture("torchvision/efficientnet_v2_s"),
    Architecture("torchvision/convnext_tiny"),
    Architecture("torchvision/shufflenet_v2_x1_0"),
    Architecture("torchvision/squeezenet1_1"),
    Architecture("torchvision/googlenet"),
    Architecture("torchvision/inception_v3", 96),
    Architecture("torchvision/mnasnet0_5"),
    Architecture("torchvision/vit_b_32", options={"image_size": 64}),
    Architecture("torchvision/swin_t"),
    Architecture("timm/resnet50d"),
    Architecture("timm/resnetv2_50"),
    Architecture("timm/resnetblur50"),
    Architecture("timm/seresnet50"),
    Architecture("timm/legacy_seresnet18"),
    Architecture("timm/skresnet18"),
    Architecture("timm/resnest14d"),
    Architecture("timm/res2net50_14w_8s"),
    Architecture("timm/dpn48b"),
    Architecture("timm/hrnet_w18_small"),
    Architecture("timm/xception41", 96),
    Architecture("timm/darknet53"),
    Architecture("timm/cspresnet50"),
    Architecture("timm/dla34"),
    Architecture("timm/ese_vovnet19b_dw"),
    Architecture("timm/hardcorenas_a"),
    Architecture("timm/tf_efficientnet_b0"),
    Architecture("timm/tf_efficientnetv2_b0"),
    Architecture("timm/tf_mobilenetv3_small_075"),
    Architecture("timm/mobilenetv4_conv_small"),
    Architecture("timm/convnextv2_atto"),
    Architecture("timm/repvgg_a0"),
    Architecture("timm/nfnet_l0"),
    Architecture("timm/ghostnet_100"),
    Architecture("timm/rexnet_100"),
    Architecture("timm/mobileone_s0"),
    Architecture("timm/fastvit_t8"),
    # It sums its positions in float32, which torchax does in another order: without attention too.
    Architecture("timm/edgenext_xx_small", limit=1e-9),
    Architecture("timm/mobilevit_xxs"),
    Architecture("timm/coatnet_nano_rw_224", options={"img_size": 64}),
    Architecture("timm/inception_next_atto"),
    Architecture("timm/poolformerv2_s12"),
    Architecture("timm/vit_tiny_patch16_224", options={"img_size": 64}),
)


@dataclass(frozen=True)
class Row:
    """How an architecture compares.

    Attributes:
        name: Of the architecture.
        size: Pixels on both axes.
        converted, convolutions: In the function of JAX, calls that became attention, of so many.
        difference: Of its outputs, relative to the largest.
        converted_modules, modules: The same of the modules of PyTorch.
        module_difference: Of the outputs of the converted module.
        seconds: That all took.
    """

    name: str
    size: int
    converted: int
    convolutions: int
    difference: float
    converted_modules: int
    modules: int
    module_difference: float
    seconds: float


def built(architecture: Architecture) -> Any:
    """The module in float64 and evaluation mode, its weights and statistics random."""
    import torch

    from convattn.torch.networks import BUILDERS

    torch.manual_seed(0)
    library, _, name = architecture.name.partition("/")
    module, _ = BUILDERS[library](name, **architecture.options)
    generator = torch.Generator().manual_seed(1)

    def uniform(tensor: Any, low: float, high: float) -> Any:
        return torch.rand(tensor.shape, generator=generator) * (high - low) + low

    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.ndim > 1:
                deviation = math.sqrt(2 / max(parameter[0].numel(), 1))
                parameter.copy_(torch.randn(parameter.shape, generator=generator) * deviation)
            else:
                parameter.copy_(uniform(parameter, 0.1, 0.9))
        for buffer_name, buffer in module.named_buffers():
            if buffer_name.endswith("running_mean"):
                buffer.copy_(uniform(buffer, -0.5, 0.5))
            elif buffer_name.endswith("running_var"):
                buffer.copy_(uniform(buffer, 0.5, 2.0))
    return module.double().eval()


def measure(architecture: Architecture) -> Row:
    """Run one architecture in the three ways."""
    import jax
    import torch

    import convattn as ca
    from convattn.torch import function_of, to_attention

    start = time.monotonic()
    module = built(architecture)
    generator = torch.Generator().manual_seed(2)
    shape = (BATCH, 3, architecture.size, architecture.size)
    images = torch.randn(shape, generator=generator, dtype=torch.float64)
    with torch.no_grad():
        expected = module(images).numpy()
    largest = abs(expected).max()
    met: list[bool] = []

    def meet(convolution: Any) -> bool:
        met.append(convolution.reason is None)
        return True

    function = function_of(module)
    attended = jax.jit(ca.with_attention(function.apply, where=meet))
    outputs = attended(function.parameters, jax.numpy.asarray(images.numpy()))
    _, report = to_attention(module, images)
    assert report.difference is not None
    return Row(
        architecture.name,
        architecture.size,
        sum(met),
        len(met),
        float(abs(outputs - expected).max() / largest),
        len(report.layers),
        len(report.layers) + len(report.left or ()),
        float(report.difference / largest),
        round(time.monotonic() - start, 1),
    )


def table(rows: list[Row]) -> Iterator[str]:
    """A row an architecture, which docs/convert-network.md sums up."""
    yield "| architecture | pixels | in JAX | difference | in PyTorch | difference |"
    yield "|---|---|---|---|---|---|"
    for row in rows:
        cells = [
            row.name,
            f"{row.size}²",
            f"{row.converted} of {row.convolutions}",
            f"{row.difference:.1e}",
            f"{row.converted_modules} of {row.modules}",
            f"{row.module_difference:.1e}",
        ]
        yield f"| {' | '.join(cells)} |"


def main() -> int:
    """Measure the architectures that are named, or all."""
    import jax

    jax.config.update("jax_enable_x64", True)
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="such as timm/resnet50d; all")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where to write the rows")
    arguments = parser.parse_args()
    known = {architecture.name: architecture for architecture in ARCHITECTURES}
    rows, failed = [], 0
    for name in arguments.names or known:
        architecture = known.get(name) or Architecture(name)
        try:
            rows.append(measure(architecture))
        except Exception as error:  # of any library: the next one is measured all the same
            print(f"{name}: {type(error).__name__}: {str(error)[:300]}", flush=True)
            failed += 1
            continue
        failed += rows[-1].difference > architecture.limit or rows[-1].module_difference > LIMIT
        print(rows[-1], flush=True)
        jax.clear_caches()
        if arguments.json:
            arguments.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
    print("\n".join(table(rows)))
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
