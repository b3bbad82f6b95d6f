"""The graph of the claims: what stands on what, read from the Coq sources and the proofs.

A node is a claim, a file of lemmas in ``foundation/``, or a theorem about the checker. An arrow
says that a proof uses what another file has (`convattn_ledger.coq.statements`), or that the text of
one claim names another. What follows from other arrows is not drawn.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import PurePosixPath

from convattn_ledger.coq.run import named_theorems
from convattn_ledger.coq.sources import Project, reached
from convattn_ledger.coq.statements import Item
from convattn_ledger.page.mathematics import anchor, mentioned
from convattn_ledger.runner import ClaimOutcome

HIDDEN = ("bridge",)  # computes values for the tests; no claim rests on it
WIDTH, HEIGHT, COLUMN, ROW = 112, 22, 138, 29
CLAIM_ROWS = 12  # then the claims alone are about as wide as a window


@dataclass(frozen=True)
class Node:
    """A claim or a file.

    Attributes:
        name: The claim's id, or the file under ``proofs/coq/``.
        label: What the picture shows.
        href: Where a click leads.
        group: The paper, or the folder of the file.
        verdict: Of a claim.
        level: The strongest level that a claim's evidence has reached; or that it fails.
    """

    name: str
    label: str
    href: str
    group: str
    verdict: str = ""
    level: str = ""


@dataclass(frozen=True)
class Graph:
    """The nodes by name, and for each what it uses."""

    nodes: dict[str, Node]
    uses: dict[str, frozenset[str]]

    def of_claims(self) -> "Graph":
        """The claims alone; no lemma uses a claim, so that none stands between two."""
        nodes = {name: node for name, node in self.nodes.items() if node.verdict}
        return Graph(nodes, {name: self.uses[name] & nodes.keys() for name in nodes})


def file_anchor(file: str) -> str:
    """The anchor of a Coq file.

    Example:
        >>> file_anchor("foundation/rank.v")
        'coq-foundation-rank'
    """
    return "coq-" + str(PurePosixPath(file).with_suffix("")).replace("/", "-")


def build_graph(
    outcomes: Sequence[ClaimOutcome], project: Project, items: Mapping[tuple[str, str], Item]
) -> Graph:
    """Read the graph."""
    proofs = [outcome.selected.proof for outcome in outcomes]
    owner = {file: claim for _, claim, file, _ in named_theorems(proofs)}
    nodes = {outcome.id: _claim_node(outcome) for outcome in outcomes}
    for file in project.files:
        folder = file.partition("/")[0]
        if file not in owner and folder not in HIDDEN:
            label = PurePosixPath(file).stem.replace("_", " ")
            nodes[file] = Node(file, label, f"#{file_anchor(file)}", folder)
    uses: dict[str, set[str]] = {name: set() for name in nodes}

    def use(one: str, other: str) -> None:
        if one != other and one in nodes and other in nodes:
            uses[one].add(other)

    for item in items.values():
        for file, _ in item.uses:
            use(owner.get(item.file, item.file), owner.get(file, file))
    for proof in proofs:
        if proof.statement is not None:
            for name in mentioned(proof.statement.proof):
                if proof.name not in {name, *reached(uses, name)}:  # no circle
                    use(proof.name, name)
    return Graph(nodes, {name: frozenset(targets) for name, targets in uses.items()})


def _claim_node(outcome: ClaimOutcome) -> Node:
    """A claim with the strongest level that was reached, or that its evidence fails."""
    paper, _, short = outcome.id.partition(".")
    claim = outcome.selected.proof.claim
    verdict = str(claim.verdict) if claim else ""
    reached = [level.name for level, passed in outcome.levels.items() if passed]
    level = "evidence fails" if outcome.result == "fails" else reached[0] if reached else "not run"
    return Node(outcome.id, short, f"#{anchor(outcome.id)}", paper, verdict, level)


def drawn_edges(graph: Graph) -> list[tuple[str, str]]:
    """The arrows that do not follow from others.

    Example:
        >>> node = lambda name: Node(name, name, "#", "S")
        >>> uses = {"a": frozenset("bc"), "b": frozenset("c"), "c": frozenset()}
        >>> drawn_edges(Graph({name: node(name) for name in "abc"}, uses))
        [('a', 'b'), ('b', 'c')]
    """
    below = {name: {name, *reached(graph.uses, name)} for name in graph.nodes}
    return [
        (one, other)
        for one, targets in graph.uses.items()
        for other in sorted(targets)
        if not any(other in below[third] for third in targets - {other})
    ]


def columns(graph: Graph, papers: Sequence[str], max_rows: int) -> list[tuple[str, list[str]]]:
    """The nodes by column: the lemmas by depth, then columns for each paper, and the checker.

    A column has at most `max_rows` nodes, in the order of the mean row of what a node uses.
    """
    depth: dict[str, int] = {}

    def of(name: str) -> int:
        if name not in depth:
            below = [of(o) for o in graph.uses[name] if graph.nodes[o].group == "foundation"]
            depth[name] = 1 + max(below, default=-1)
        return depth[name]

    placed: dict[str, list[str]] = defaultdict(list)
    for name, node in graph.nodes.items():
        group = f"lemmas, depth {of(name) + 1}" if node.group == "foundation" else node.group
        placed[group].append(name)
    lemmas = sorted((g for g in placed if g.startswith("lemmas")), key=lambda g: int(g.split()[-1]))
    rest = [g for g in placed if g not in (*lemmas, *papers)]
    order = [*lemmas, *(paper for paper in papers if paper in placed), *sorted(rest)]
    row_of: dict[str, float] = {}
    result = []
    for group in order:
        names = placed[group]
        names.sort(key=lambda name: _centre(graph.uses[name], row_of, name))
        row_of |= {name: row - len(names) / 2 for row, name in enumerate(names)}
        rows = -(-len(names) // -(-len(names) // max_rows))
        result += [(group, names[first : first + rows]) for first in range(0, len(names), rows)]
    return result


def _centre(uses: frozenset[str], row_of: Mapping[str, float], name: str) -> tuple[float, str]:
    """The mean row of what a node uses; nodes that use nothing stand last."""
    rows = [row_of[other] for other in uses if other in row_of]
    return (sum(rows) / len(rows) if rows else 1e9, name)


def draw(graph: Graph, papers: Sequence[str], kind: str, max_rows: int) -> str:
    """The graph as SVG of this class, each node a link; colours come from the page's style."""
    groups = columns(graph, papers, max_rows)
    tallest = max((len(names) for _, names in groups), default=0)
    position: dict[str, tuple[float, float]] = {}
    parts = []
    for column, (group, names) in enumerate(groups):
        x: float = column * COLUMN + 10
        middle = f'x="{x + WIDTH / 2}" y="16" text-anchor="middle"'
        parts.append(f'<text class="group" {middle}>{escape(group)}</text>')
        top = 30 + (tallest - len(names)) * ROW / 2
        for row, name in enumerate(names):
            position[name] = (x, top + row * ROW)
    arrows = [
        _arrow(one, other, position[other], position[one]) for one, other in drawn_edges(graph)
    ]
    for name, (x, y) in position.items():
        node = graph.nodes[name]
        said = f"{name}, {node.verdict}, {node.level}" if node.verdict else f"{name}, lemmas"
        verdict = node.verdict.replace(" ", "-") or "lemmas"
        parts.append(
            f'<a href="{node.href}" data-node="{escape(name)}" class="node {verdict} '
            f'{node.level.lower().replace(" ", "-")}" aria-label="{escape(said)}">'
            f"<title>{escape(said)}</title>"
            f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="4"></rect>'
            f'<text x="{x + WIDTH / 2}" y="{y + 15}" text-anchor="middle">{escape(node.label)}'
            "</text></a>"
        )
    width, height = max(len(groups), 1) * COLUMN - 6, 40 + tallest * ROW
    return (
        f'<svg class="{kind}" viewBox="0 0 {width} {height}" style="min-width: {width}px" '
        'role="group" aria-label="An arrow leads from what is used to what uses it">'
        f"<g>{''.join(arrows)}</g><g>{''.join(parts)}</g></svg>"
    )


def _arrow(one: str, other: str, start: tuple[float, float], end: tuple[float, float]) -> str:
    """A curve from what is used to what uses it; within a column it goes round the side."""
    x1, y1 = start[0] + WIDTH, start[1] + HEIGHT / 2
    x2, y2 = end[0], end[1] + HEIGHT / 2
    if end[0] > start[0]:
        bend = (x2 - x1) / 2
        path = f"M{x1} {y1}C{x1 + bend} {y1} {x2 - bend} {y2} {x2} {y2}"
    elif end[0] == start[0]:
        path = f"M{x1} {y1}C{x1 + 30} {y1} {x1 + 30} {y2} {x1} {y2}"
    else:
        x1, x2 = start[0], end[0] + WIDTH
        bend = (x1 - x2) / 2
        path = f"M{x1} {y1}C{x1 - bend} {y1} {x2 + bend} {y2} {x2} {y2}"
    return f'<path d="{path}" data-from="{escape(other)}" data-to="{escape(one)}"></path>'
