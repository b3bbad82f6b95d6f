"""Runs of ours: encoders, vision transformers, self-attentive networks, and ResNets, converted."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import Array

from convattn.constructions.conversion import conv_to_attention
from convattn.diagnosis.layers import (
    LayerAttention,
    compiled_maps,
    layer_attention,
    linear_maps,
)
from convattn.encodings.layer import AttentionLayer
from convattn.fast.application import apply_attention
from convattn.networks.transformation.attention_of import attention_of
from convattn.nnx.vision_transformer.attention_mixing import AttentionMixing
from convattn.nnx.vision_transformer.convolution_mixing import ConvolutionMixing
from convattn.nnx.vision_transformer.model import VisionTransformer
from convattn.nnx.watching import Watch
from convattn.operators.attention import attention_weights
from convattn.operators.patches import unpatchify
from convattn.sac.self_attentive_convolution import attention_scores, strided_space
from convattn_lab.analysis.attention import layer_inputs
from convattn_lab.analysis.restored_run import RestoredRun, restore_run
from convattn_lab.explorer.converted import of_layers, outputs_of
from convattn_lab.explorer.positional_layer import PositionalLayer
from convattn_lab.explorer.source import Outputs, Prepared, Source, normaliser
from convattn_lab.models.encoder import Encoder
from convattn_lab.models.resnet import ResNet
from convattn_lab.models.resnet_function import image_function
from convattn_lab.models.self_attentive_resnet import (
    SelfAttentiveResNet,
    with_self_attention,
)
from convattn_lab.runs.directory import CONFIG
from convattn_lab.runs.images import image_size_of
from convattn_lab.two_phase.pipeline import PHASE_TWO

Inputs = Iterator[tuple[AttentionLayer, Array]]


def of_run(path: Path) -> Source:
    """The run in a folder, or the second phase of a folder with two.

    Raises:
        ValueError: As `restore_run` does, and for a model that has no attention to be shown.
    """
    if not (path / CONFIG).exists() and (path / PHASE_TWO / CONFIG).exists():
        path = path / PHASE_TWO
    run = restore_run(path)
    model, size = run.model, image_size_of(run.dataset, run.settings)
    named = f"{path.resolve().name}, {run.when}"
    how: dict[str, Any] = {"samples": run.dataset.test}
    if isinstance(model, ResNet):
        function = image_function(model, run.images.mean, run.images.std)
        layers, apply, _ = attention_of(function, jnp.zeros((1, *size, 3), jnp.uint8))
        inputs = jax.jit(lambda images: apply.inputs(layers, images))
        notes = ("The convolutions of the trained ResNet are converted here.",)
        kind = "ResNet, converted"
        return of_layers(named, layers, inputs, size, kind=kind, notes=notes, **how)
    if isinstance(model, SelfAttentiveResNet):
        if model.settings.operator == "convolution":
            model = with_self_attention(model)
            how["notes"] = ("Its convolutions are shown as the SAC that compute the same.",)
        return _source(named, run, size, "self-attentive network", attend=_operators(model), **how)
    if isinstance(model, VisionTransformer) and model.attention_layers():
        return _source(named, run, size, "vision transformer", attend=_mixings(model), **how)
    if isinstance(model, VisionTransformer) and model.settings.border == "zero":
        return _of_convolutions(named, run, size, model)
    if isinstance(model, Encoder) and any(model.settings.heads):
        if model.settings.encoding == "content":
            return _source(named, run, size, "encoder, content", attend=_encoder(model), **how)
        tokens = tuple(side // model.settings.downsampling for side in size)
        positional = tuple(
            PositionalLayer(f"layer {number}", layer, (tokens[0], tokens[1]))
            for number, layer in enumerate(model.attention_layers(), 1)
            if layer.heads
        )
        kind = f"encoder, {model.settings.encoding}"
        return _source(named, run, size, kind, positional=positional, **how)
    raise ValueError(
        f"{path} trained a {type(model).__name__} without heads, or with convolutions whose border "
        "is not zeros, but expected attention, or convolutions that become attention; of a "
        "pipeline of two phases give its folder, or phase2 in it"
    )


def _source(name: str, run: RestoredRun, size: tuple[int, int], kind: str, **how: Any) -> Source:
    return Source(name, kind, size, normaliser(run.images.mean, run.images.std), **how)


def _encoder(model: Encoder) -> Callable[[Prepared], Iterator[LayerAttention]]:
    return _compiled(model, layer_inputs, None)


def _mixings(model: VisionTransformer) -> Callable[[Prepared], Iterator[LayerAttention]]:
    def inputs(model: VisionTransformer, images: Array) -> Inputs:
        tokens = model.embedded(images)
        for layer in model.layers:
            if isinstance(layer.mixing, AttentionMixing):
                yield layer.mixing.layer(), layer.mixing_inputs(tokens)
            tokens = layer(tokens)

    return _compiled(model, inputs, model.tokens)


def _compiled(
    model: Any, inputs: Callable[[Any, Any], Inputs], grid: tuple[int, int] | None
) -> Callable[[Prepared], Iterator[LayerAttention]]:
    """The attention to what each layer sees, which is one compiled program."""
    graph, state = nnx.split(model)
    layers = model.attention_layers()

    @jax.jit
    def layer_tokens(state: Any, images: Array) -> list[Array]:
        return [tokens.astype(jnp.float32) for _, tokens in inputs(nnx.merge(graph, state), images)]

    def attended(images: Prepared) -> Iterator[LayerAttention]:
        token_arrays = layer_tokens(state, jnp.asarray(images, jnp.float32))
        for number, (layer, tokens) in enumerate(zip(layers, token_arrays, strict=True), 1):
            if layer.heads:
                attention = layer_of(layer, np.asarray(tokens), grid)
                yield replace(attention, name=f"layer {number}")

    return attended


def _of_convolutions(
    name: str, run: RestoredRun, size: tuple[int, int], model: VisionTransformer
) -> Source:
    """The first of two phases: each convolution, and the attention on patches that it becomes."""
    patch = model.settings.patch_size
    graph, state = nnx.split(model)
    layers = [
        conv_to_attention(layer.mixing.kernel[...], layer.mixing.bias[...], patch_size=patch)
        for layer in model.layers
        if isinstance(layer.mixing, ConvolutionMixing)
    ]

    @jax.jit
    def layer_images(state: Any, images: Array) -> list[tuple[Array, Array]]:
        pairs, merged = [], nnx.merge(graph, state)
        tokens = merged.embedded(images)
        for layer in merged.layers:
            inputs = layer.mixing_inputs(tokens).astype(jnp.float32)
            pairs.append((unpatchify(inputs, patch), unpatchify(layer.mixing(inputs), patch)))
            tokens = layer(tokens)
        return pairs

    def compare(images: Prepared) -> list[Callable[[], Outputs]]:
        def of(layer: AttentionLayer, x: Array, before: Array) -> Callable[[], Outputs]:
            return lambda: outputs_of(before, apply_attention(layer, x))

        pairs = layer_images(state, jnp.asarray(images))
        return [of(layer, *pair) for layer, pair in zip(layers, pairs, strict=True)]

    positional = tuple(
        PositionalLayer(f"layer {n}", layer, size) for n, layer in enumerate(layers, 1)
    )
    how = {"positional": positional, "compare": compare, "samples": run.dataset.test}
    notes = ("The trained convolutions are converted here.",)
    return _source(name, run, size, "vision transformer, converted", notes=notes, **how)


def layer_of(
    layer: AttentionLayer, tokens: np.ndarray, grid: tuple[int, int] | None
) -> LayerAttention:
    """The attention to tokens on a grid, or to a sequence of a class token and the grid's."""
    if len(layer.patch_size) == 2 or grid is None:
        return layer_attention(layer, tokens, None)
    several = [tokens, tokens.mean(axis=0, keepdims=True)][: 1 + (len(tokens) > 1)]
    weights = [np.asarray(compiled_maps(layer, batch).weights, np.float64) for batch in several]
    maps = linear_maps(layer, weights[0].shape[-1])
    return LayerAttention("layer 1", grid, weights[0], weights[-1][0], maps)


def _operators(model: SelfAttentiveResNet) -> Callable[[Prepared], Iterator[LayerAttention]]:
    """Each scale of each operator; where keys are finer, a query stands for all its pixels."""
    operators = {
        f"blocks.{number}.{name}": getattr(block, name)
        for number, block in enumerate(model.blocks)
        for name in ("first", "second")
    }
    calls = Watch(operators).calls

    def attended(images: Prepared) -> Iterator[LayerAttention]:
        for recorded in calls.values():
            recorded.clear()
        model(jnp.asarray(images))
        for name, module in operators.items():
            operator, inputs = module.operator, calls[name][0].inputs.astype(jnp.float32)
            several = hasattr(operator, "scales")
            for number, scale in enumerate(operator.scales if several else [operator], 1):
                label = f"{name}, scale {number}" if several else name
                yield _of_scale(label, scale.parameters, inputs)

    return attended


def _of_scale(name: str, parameters: Any, images: Array) -> LayerAttention:
    space = images.shape[1:3]
    queries = strided_space(space, parameters.stride)
    keys = strided_space(space, parameters.key_stride)
    positions = np.indices(keys).reshape(2, -1)
    step = [s // k for s, k in zip(parameters.stride, parameters.key_stride, strict=True)]
    which = (positions[0] // step[0]) * queries[1] + positions[1] // step[1]

    def weights(images: Array) -> np.ndarray:
        maps = np.asarray(attention_weights(*attention_scores(parameters, images)), np.float64)
        maps = maps if maps.ndim == 4 else maps[None].repeat(max(2, len(images)), axis=0)
        return maps[:, :, which]

    at_mean = weights(images.mean(axis=0, keepdims=True))[0]
    return LayerAttention(name, (keys[0], keys[1]), weights(images), at_mean, None)
