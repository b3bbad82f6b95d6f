"""Networks of Flax that `convattn convert --network FILE` has written."""

from collections.abc import Callable
from functools import cache
from typing import Any

import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import Array

from convattn.nnx.attention_conv import AttentionConv
from convattn.nnx.surgery import sites, watch
from convattn.page.explorer.converted import RECOVERED, outputs_of
from convattn.page.explorer.source import Outputs, Pixels, Prepared, Source
from convattn.page.explorer.still import StillLayer


def of_module(
    name: str, model: Any, image_size: tuple[int, int], prepare: Callable[[Pixels], Prepared]
) -> Source:
    """A network, and the convolution that each of its layers was."""
    places = {site.path: site.module for site in sites(nnx.List([model]), (AttentionConv,))}
    calls = watch(places, AttentionConv)

    def run(images: Prepared) -> dict[str, tuple[Array, Array]]:
        calls.clear()
        model(jnp.asarray(images))
        return {path: calls[id(each)][0] for path, each in places.items() if id(each) in calls}

    @cache
    def convolution(path: str) -> nnx.Conv:
        return places[path].to_conv().conv

    first = run(np.zeros((1, *image_size, 3), np.float32))

    def compare(images: Prepared) -> list[Callable[[], Outputs]]:
        seen = run(images)

        def of(path: str) -> Callable[[], Outputs]:
            inputs, after = seen[path]
            return lambda: outputs_of(convolution(path)(inputs), after)

        return [of(path) for path in first]

    still = tuple(
        StillLayer(path, places[path].group_layer(), (x.shape[1], x.shape[2]))
        for path, (x, _) in first.items()
    )
    how: dict[str, Any] = {"still": still, "compare": compare}
    return Source(name, "converted network", image_size, prepare, (RECOVERED,), **how)
