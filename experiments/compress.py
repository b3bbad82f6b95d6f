"""Accuracy against heads, when a trained ResNet becomes attention with too few of them.

Every convolution W is replaced by the layer that `approximate_conv` finds for N heads: exact
up to rounding for N = K² (for 1 × 1 with one head), and with a squared error of Σ_(i≥N) σ_i² or
less below that, σ_i the singular values of the kernel flattened to K² columns. It is built at
stride 1; the stride is taken from its result.

*Distributing heads.* With H heads for all layers together, each gets one, and the others go, one
after the other, where they take away most of Σ_layers error/|W|², the relative squared errors;
where one more head does not help but several do, the several are taken for their mean. The errors
of different layers matter differently to the logits, which this rule does not look at.

Run `python experiments/compress.py RUN_DIR --output DIR`; see also `--help`.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import jax.numpy as jnp
import numpy as np
import tyro

from convattn.bounds.approximation import approximate_conv
from convattn.cli.output import write_json
from convattn.cli.running import SUCCESS, UsageError, guarded
from convattn.diagnosis.picture import new_figure, save_picture
from convattn.encodings.layer import AttentionLayer
from convattn.networks.transformation.attention_of import attention_of
from convattn_lab.analysis.finished_resnet import finished_resnet
from convattn_lab.commands.convert_run import logits_of
from convattn_lab.models.resnet_function import folded, image_function, normalized_convolutions

PROGRAM = "experiments/compress.py"
EVEN, DISTRIBUTED, EXACT = "so many heads in each layer", "distributed by error", "exact"


@dataclass(frozen=True)
class LayerChoices:
    """What a convolution can be replaced by.

    Attributes:
        layers: With at most 1, 2, …, K² heads.
        errors: The relative squared error of each, certified from above, and never rising.
    """

    layers: tuple[AttentionLayer, ...]
    errors: tuple[float, ...]

    @property
    def max_heads(self) -> int:
        """K²."""
        return len(self.layers)


def choices_of(
    kernels: Mapping[str, np.ndarray], layers: Mapping[str, AttentionLayer]
) -> dict[str, LayerChoices]:
    """For every convolution of a network its approximations with 1, …, K² heads.

    Args:
        kernels: `[K, K, in, out]`, by the names of the convolutions.
        layers: From `attention_of`, whose strides and paddings are kept.

    >>> import jax.numpy as jnp, convattn as ca
    >>> kernel = jnp.zeros((3, 3, 1, 1)).at[1, :, 0, 0].set(jnp.array([1.0, 0.0, -1.0]))
    >>> choice = choices_of({"edge": kernel}, {"edge": ca.conv_to_attention(kernel)})["edge"]
    >>> choice.max_heads, round(choice.errors[0], 3), choice.errors[1] < 1e-6
    (9, 0.5, True)
    """
    choices_of_layers: dict[str, LayerChoices] = {}
    for name, weights in kernels.items():
        kernel, exact = np.asarray(weights), layers[name]
        size = float((kernel.astype(np.float64) ** 2).sum()) or 1.0
        choices: list[AttentionLayer] = []
        errors: list[float] = []
        for heads in range(1, kernel.shape[0] * kernel.shape[1] + 1):
            approximation = approximate_conv(kernel, heads)
            layer, error = approximation.layer, approximation.error.upper / size
            if errors and error > errors[-1]:
                layer, error = choices[-1], errors[-1]
            choices.append(replace(layer, stride=exact.stride, padding=exact.padding))
            errors.append(error)
        choices_of_layers[name] = LayerChoices(tuple(choices), tuple(errors))
    return choices_of_layers


def distribute(choices: Mapping[str, LayerChoices], heads: int) -> dict[str, int]:
    """How many heads each layer gets of so many for all: the rule above.

    >>> import convattn as ca
    >>> layer = ca.conv_to_attention([[[1.0]]])
    >>> steep = LayerChoices((layer,) * 3, (0.9, 0.5, 0.0))
    >>> distribute({"steep": steep, "flat": LayerChoices((layer,) * 2, (0.1, 0.0))}, 4)
    {'steep': 3, 'flat': 1}
    """
    if heads < len(choices):
        raise ValueError(
            f"heads={heads}, but there are {len(choices)} layers, each with one or more"
        )
    budgets = dict.fromkeys(choices, 1)
    left = heads - len(choices)
    while True:
        steps = []
        for name, now in budgets.items():
            errors = choices[name].errors
            for more in range(1, min(left, choices[name].max_heads - now) + 1):
                gain = (errors[now - 1] - errors[now + more - 1]) / more
                steps.append((gain, name, more))
        gain, name, more = max(steps, key=lambda step: step[0], default=(0.0, "", 0))
        if gain <= 0:
            return budgets
        budgets[name] += more
        left -= more


def compress(
    choices: Mapping[str, LayerChoices], heads: Mapping[str, int]
) -> dict[str, AttentionLayer]:
    """Of each convolution the approximation with so many heads, for `apply` of `attention_of`.

    Args:
        heads: By name; more than K² count as K².
    """
    return {
        name: choice.layers[min(heads[name], choice.max_heads) - 1]
        for name, choice in choices.items()
    }


@dataclass(frozen=True)
class Compressed:
    """One network with fewer heads.

    Attributes:
        rule: How the heads were given out.
        budget: How many a layer, in the mean.
        heads: Of all layers; `by_layer`.
        correct, images: On the test images.
        error: The mean of the layers' relative squared errors.
    """

    rule: str
    budget: int
    heads: int
    by_layer: dict[str, int]
    correct: int
    images: int
    error: float


def accuracies(run: Any, model: Any, budgets: Sequence[int]) -> Iterator[Compressed]:
    """Both rules for each budget, and the exact network of K² + 1 heads, one after the other.

    Args:
        run, model: From `finished_resnet`.
        budgets: Heads a layer; distributed, as many in all.
    """
    model, test = folded(model), run.images.test
    kernels = {
        name: np.asarray(layer.convolution.kernel[...])
        for name, layer in normalized_convolutions(model)
    }
    function = image_function(model, run.images.mean, run.images.std)
    layers, apply, _ = attention_of(function, jnp.asarray(test.images[:1]))
    choices = choices_of(kernels, layers)

    def compressed(
        rule: str, budget: int, heads: dict[str, int], own: Any, error: float
    ) -> Compressed:
        logits = logits_of(lambda images: apply(own, images), test.images)
        correct = int((logits.argmax(axis=1) == test.labels).sum())
        return Compressed(rule, budget, sum(heads.values()), heads, correct, len(test), error)

    for budget in budgets:
        even = {name: min(budget, choice.max_heads) for name, choice in choices.items()}
        row = compressed(EVEN, budget, even, compress(choices, even), _mean_error(choices, even))
        yield row
        heads = distribute(choices, sum(even.values()))
        if heads == even:
            yield replace(row, rule=DISTRIBUTED)
            continue
        error = _mean_error(choices, heads)
        yield compressed(DISTRIBUTED, budget, heads, compress(choices, heads), error)
    exact = {name: layer.heads for name, layer in layers.items()}
    yield compressed(EXACT, max(exact.values()), exact, layers, 0.0)


def _mean_error(choices: Mapping[str, LayerChoices], heads: Mapping[str, int]) -> float:
    return float(np.mean([choices[name].errors[count - 1] for name, count in heads.items()]))


def draw_compression(networks: Sequence[Compressed], title: str, trained: float) -> Any:
    """A figure: the fraction of test images that are classified correctly against heads in all."""
    figure = new_figure(6, 4, title=title)
    axes = figure.add_subplot()
    for rule, mark in ((EVEN, "o-"), (DISTRIBUTED, "s--"), (EXACT, "*")):
        points = [
            (network.heads, network.correct / network.images)
            for network in networks
            if network.rule == rule
        ]
        axes.plot(*np.array(points).T, mark, label=rule, gid=rule.split()[0])
    axes.axhline(trained, linewidth=0.8, color="black", label="as trained")
    axes.set(xlabel="heads of all layers", ylabel="accuracy on the test images", ylim=(0, 1))
    axes.grid(visible=True, alpha=0.3)
    axes.legend(fontsize=8)
    return figure


def compress_run(path: Path, folder: Path, budgets: Sequence[int] = tuple(range(1, 10))) -> int:
    """The study of a run: `compression.json`, and the figure as PNG and SVG.

    Raises:
        ValueError: For what is not a finished run of a ResNet.
    """
    run, model, recorded = finished_resnet(path)
    folder.mkdir(parents=True, exist_ok=True)  # before the work, in case it cannot be
    networks = []
    for network in accuracies(run, model, budgets):
        print(
            f"{network.rule}, {network.heads} heads: {network.correct} of {network.images}",
            flush=True,
        )
        networks.append(network)
    title = (
        f"{path.resolve().name}: convolutions as attention with fewer heads, {run.dataset.title}"
    )
    document = {
        "schema": 1,
        "run": str(path),
        "as_trained": recorded,
        "networks": [asdict(network) for network in networks],
    }
    write_json(folder / "compression.json", document)
    for picture in save_picture(draw_compression(networks, title, recorded), folder, "compression"):
        print(picture)
    return SUCCESS


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `experiments/compress.py`."""
    words = sys.argv[1:] if arguments is None else list(arguments)

    def command(
        run: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN_DIR")],
        output: Annotated[Path, tyro.conf.arg(metavar="DIR")],
        heads: tuple[int, ...] = tuple(range(1, 10)),
    ) -> int:
        """Accuracy of a finished run's ResNet as attention layers, against the number of heads."""
        if not heads or min(heads) < 1:
            raise UsageError(f"--heads got {heads}, but expected integers ≥ 1")
        if output.exists() and not output.is_dir():
            raise UsageError(f"--output got {output}, which is a file, but expected a folder")
        try:
            return compress_run(run, output, heads)
        except ValueError as error:
            raise UsageError(str(error)) from error
        except OSError as error:
            raise UsageError(f"{error.filename}: {error.strerror}") from error

    return guarded(PROGRAM, lambda: tyro.cli(command, args=words, prog=f"python {PROGRAM}"))


if __name__ == "__main__":
    sys.exit(main())
