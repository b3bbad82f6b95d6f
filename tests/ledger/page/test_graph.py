"""The graph of the claims: its arrows are uses, none follows from others, none is forgotten."""

import re
from xml.etree import ElementTree

import pytest
from ledger.page.conftest import outcome_of

from convattn_ledger.coq.sources import read_project
from convattn_ledger.coq.statements import items
from convattn_ledger.discovery import PAPERS, discover
from convattn_ledger.locations import coq_directory, proofs_directory
from convattn_ledger.page.graph import (
    CLAIM_ROWS,
    Graph,
    Node,
    build_graph,
    columns,
    draw,
    drawn_edges,
)


@pytest.fixture(scope="module")
def graph() -> Graph:
    project = read_project(coq_directory())
    outcome = outcome_of(discover(proofs_directory()))
    return build_graph(outcome.claims, project, items(project))


def reached(edges: list[tuple[str, str]], name: str) -> set[str]:
    names = {name}
    while new := {other for one, other in edges if one in names} - names:
        names |= new
    return names


@pytest.mark.slow
def test_every_claim_is_a_node_and_known_uses_are_arrows(graph: Graph) -> None:
    some = {"S.finite", "C20.lemma1", "foundation/attention.v", "checker/rank.v"}
    assert some <= set(graph.nodes)
    assert "S.heads" in graph.uses["L21.theorem5"]  # its Coq file requires that of S.heads
    assert "foundation/patches.v" in graph.uses["S.finite"]
    assert graph.nodes["C20.alpha46"].verdict == "refuted"
    assert graph.nodes["S.finite"].level == "PROVED"


@pytest.mark.slow
def test_nothing_stands_on_itself(graph: Graph) -> None:
    edges = [(one, other) for one, uses in graph.uses.items() for other in uses]
    for name in graph.nodes:
        assert not any(name in reached(edges, other) for other in graph.uses[name])


@pytest.mark.slow
def test_what_is_drawn_reaches_what_is_used(graph: Graph) -> None:
    edges = drawn_edges(graph)
    assert len(edges) < sum(map(len, graph.uses.values()))
    for name, uses in graph.uses.items():
        assert uses <= reached(edges, name)
    without = edges[1:]
    assert any(not uses <= reached(without, name) for name, uses in graph.uses.items())


@pytest.mark.slow
def test_the_picture_has_every_node_once_without_overlap(graph: Graph) -> None:
    picture = draw(graph, list(PAPERS), "whole", 40)
    ElementTree.fromstring(picture.replace('viewBox="', 'data-box="'))
    assert sorted(re.findall(r'data-node="([^"]+)"', picture)) == sorted(graph.nodes)
    places = re.findall(r'<rect x="([\d.]+)" y="([\d.]+)"', picture)
    assert len(set(places)) == len(graph.nodes)
    names = [name for name, _ in columns(graph, list(PAPERS), 40)]
    assert names[-3:] == ["checker", "definitions", "extracted"]


@pytest.mark.slow
def test_the_claims_alone_keep_their_uses(graph: Graph) -> None:
    alone = graph.of_claims()
    assert {"S.finite", "L21.theorem5"} <= set(alone.nodes)
    assert not any(name.endswith(".v") for name in alone.nodes)
    assert "S.heads" in alone.uses["L21.theorem5"]
    lemmas = graph.nodes.keys() - alone.nodes.keys()
    assert not any(graph.uses[name] & alone.nodes.keys() for name in lemmas)
    heights = [len(names) for _, names in columns(alone, list(PAPERS), CLAIM_ROWS)]
    assert max(heights) <= CLAIM_ROWS
    assert sum(heights) == len(alone.nodes)


def test_names_are_escaped() -> None:
    node = Node('<b "', "<b>", "#", "S", "holds", "PROVED")
    assert "<b" not in draw(Graph({node.name: node}, {node.name: frozenset()}), ["S"], "", 1)
