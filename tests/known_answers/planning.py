"""The networks of the suite as they are compiled; most of them are left to the slow tests."""

from collections.abc import Collection

import pytest

from convattn.compile.compilation import _planned
from convattn.compile.plan import Plan
from convattn.known_answers import NETWORKS, KnownNetwork

KNOWN = {network.name: network for network in NETWORKS}


def planned(network: KnownNetwork) -> Plan:
    example = (network.example(),)
    return _planned(network.function, example, network.patch_size, None, None, False, None)[0]


def every(quick: Collection[str]) -> list[object]:
    """Parameters: all networks, all but these slow."""
    return [
        pytest.param(network, id=name, marks=() if name in quick else pytest.mark.slow)
        for name, network in KNOWN.items()
    ]
