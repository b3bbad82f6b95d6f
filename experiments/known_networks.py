"""Train the two networks of the suite that are trained, and round their weights: a minute.

    python experiments/known_networks.py

writes src/convattn/known_answers/trained.npz. Weights are trained in float32, rounded to 1/64, and
the accuracy on the 500 test images of the slice is printed, before and after.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from convattn.data import load_cifar10_slice
from convattn.known_answers import trained

WIDTH, EPOCHS, BATCH, RATE, SEED = 8, 60, 100, 0.005, 0
LAYERS: dict[str, tuple[Callable[..., Any], int]] = {
    "plain": (trained.plain_network, 2),
    "residual": (trained.residual_network, 3),
}


def initial(layers: int, seed: int) -> dict[str, np.ndarray]:
    """Truncated normal kernels of gain 2, and biases 0."""
    keys = jax.random.split(jax.random.key(seed), layers + 1)
    parameters: dict[str, Any] = {}
    for number in range(layers):
        inputs = 3 if number == 0 else WIDTH
        normal = jax.random.truncated_normal(keys[number], -2, 2, (3, 3, inputs, WIDTH))
        parameters[f"layer{number}.kernel"] = normal * (2 / (9 * inputs)) ** 0.5
        parameters[f"layer{number}.bias"] = jnp.zeros(WIDTH)
    parameters["classifier.kernel"] = jax.random.truncated_normal(keys[-1], -2, 2, (WIDTH, 10)) / 3
    parameters["classifier.bias"] = jnp.zeros(10)
    return parameters


def train(network: Callable[..., Any], layers: int) -> dict[str, np.ndarray]:
    """Adam with half a cosine, on the 2,000 training images and their mirror images."""
    data = load_cifar10_slice("train")
    images, labels = jnp.asarray(trained.halved(data.images)), jnp.asarray(data.labels, jnp.int32)
    steps = EPOCHS * (len(labels) // BATCH)
    optimiser = optax.adam(optax.cosine_decay_schedule(RATE, steps))
    weights = initial(layers, SEED)
    state = optimiser.init(weights)

    def loss(weights: Any, images: Any, labels: Any) -> Any:
        scores = network(weights, images)
        return optax.softmax_cross_entropy_with_integer_labels(scores, labels).mean()

    @jax.jit
    def step(weights: Any, state: Any, images: Any, labels: Any) -> Any:
        gradients = jax.grad(loss)(weights, images, labels)
        updates, state = optimiser.update(gradients, state)
        return optax.apply_updates(weights, updates), state

    random = np.random.default_rng(SEED)
    for _ in range(EPOCHS):
        order = random.permutation(len(labels))
        for start in range(0, len(order), BATCH):
            own = order[start : start + BATCH]
            batch = images[own]
            batch = batch[:, :, ::-1] if random.random() < 0.5 else batch
            weights, state = step(weights, state, batch, labels[own])
    return {name: np.asarray(array) for name, array in weights.items()}


def accuracy(network: Callable[..., Any], weights: dict[str, np.ndarray]) -> float:
    """Of the 500 test images."""
    data = load_cifar10_slice("test")
    scores = network(weights, jnp.asarray(trained.halved(data.images)))
    return float((np.asarray(scores).argmax(-1) == data.labels).mean())


def main() -> None:
    """Train, round, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = Path(trained.__file__).with_name(trained.FILE_NAME)
    parser.add_argument("--output", type=Path, default=default, help="default: %(default)s")
    output = parser.parse_args().output
    arrays: dict[str, np.ndarray] = {}
    for name, (network, layers) in LAYERS.items():
        weights = train(network, layers)
        integers = {
            key: np.rint(array * trained.UNIT).astype(np.int16) for key, array in weights.items()
        }
        rounded = {
            key: (array / trained.UNIT).astype(np.float32) for key, array in integers.items()
        }
        before, after = accuracy(network, weights), accuracy(network, rounded)
        largest = max(int(np.abs(array).max()) for array in integers.values())
        print(f"{name}: {before:.1%} of the test images, rounded {after:.1%}; largest {largest}/64")
        arrays |= {f"{name}.{key}": array for key, array in integers.items()}
    np.savez_compressed(output, allow_pickle=False, **arrays)


if __name__ == "__main__":
    main()
