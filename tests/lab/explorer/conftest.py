"""Small models, and the explorer serving one of them on a port of this machine."""

import http.client
import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from diagnosis.small_transformers import timm_dict

import convattn as ca
from convattn.networks.weights.formats import write_safetensors
from convattn_lab.explorer.model import ExploredModel
from convattn_lab.explorer.opening import open_source
from convattn_lab.explorer.run import Server, configured, listening
from convattn_lab.explorer.server import explorer

TOKEN = "the-token"


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ViT on 2 × 3 tokens, a converted layer on pictures, and attention of two images."""
    folder = tmp_path_factory.mktemp("models")
    arrays = {name: array.astype(np.float32) for name, array in timm_dict().items()}
    (folder / "vit.safetensors").write_bytes(write_safetensors(arrays, {}))
    kernel = np.random.default_rng(2).normal(size=(3, 3, 3, 4))
    ca.save_layer(ca.conv_to_attention(jnp.asarray(kernel)), folder / "layer.safetensors")
    rows = np.random.default_rng(3).dirichlet(np.ones(7), size=(2, 3, 7))
    np.save(folder / "maps.npy", rows)
    return folder


@pytest.fixture(scope="session")
def vit(files: Path) -> ExploredModel:
    source = open_source(files / "vit.safetensors", heads=2, image_size=(8, 12))
    model = ExploredModel(source, reference=3)
    model.measure()
    return model


@pytest.fixture(scope="session")
def layer(files: Path) -> ExploredModel:
    model = ExploredModel(open_source(files / "layer.safetensors", image_size=(8, 9)))
    model.measure()
    return model


class Served:
    """A model that is served; requests are sent byte for byte, with no address made shorter."""

    def __init__(self, model: ExploredModel) -> None:
        listener = listening()
        self.port = listener.getsockname()[1]
        self.server = Server(configured(explorer(model, TOKEN, self.port)))
        threading.Thread(target=self.server.run, args=([listener],), daemon=True).start()
        while not self.server.started:
            time.sleep(0.005)
        self.url = f"http://127.0.0.1:{self.port}/{TOKEN}/"

    def ask(
        self,
        path: str,
        method: str = "GET",
        body: Any = None,
        token: str = f"/{TOKEN}/",
        **headers: str,
    ) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, token + path, body, named)
        answer = connection.getresponse()
        content, header = answer.read(), dict(answer.getheaders())
        connection.close()
        if "json" in header.get("content-type", ""):
            content = json.loads(content)
        return SimpleNamespace(code=answer.status, content=content, headers=header)


@pytest.fixture(scope="session")
def serve() -> Iterator[Any]:
    servers: list[Served] = []

    def started(model: ExploredModel) -> Served:
        servers.append(Served(model))
        return servers[-1]

    yield started
    for server in servers:
        server.server.should_exit = True


@pytest.fixture(scope="session")
def served(serve: Any, vit: ExploredModel) -> Served:
    return serve(vit)
