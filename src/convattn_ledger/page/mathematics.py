"""Prose with formulas in plain Unicode, as proof files have it, to HTML with MathML.

A formula is a longest run of mathematical tokens (letters alone, Greek, numbers, operators, names
with scripts, brackets that match) that holds more than numbers and brackets. Words end a run; so
do commas, colons and full stops outside brackets. Scripts are written `W_qry`, `e^(-α)`, `x_{ij}`
or `K²`.
"""

import re
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape

FUNCTIONS = frozenset(
    (
        "abs",
        "conv",
        "det",
        "diag",
        "exp",
        "im",
        "ker",
        "log",
        "max",
        "min",
        "mod",
        "rank",
        "rk",
        "sign",
        "softmax",
        "span",
        "sup",
        "tanh",
        "vec",
    )
)
ARTICLES = frozenset("aAI")
WORDS_BELOW = frozenset({"in", "kv", "tr"})  # indices of two letters that are one word
RAISED = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺ᵀⁿⁱ′⁽⁾", "0123456789−+Tni′()", strict=True))
LOWERED = dict(zip("₀₁₂₃₄₅₆₇₈₉₋₊ᵢⱼₖₕₙₘₚₓ", "0123456789−+ijkhnmpx", strict=True))
RELATIONS = "=≠≤≥<>≈≪≫≃∈∉⊂⊆→↦⇒⇔↔∼"
OPERATORS = f"{RELATIONS}·×+±⊕⊗∘⋆√Σ∏∫∪∩∞∂∀∃∅"
OPENING, CLOSING = "([{⌊⌈", ")]}⌋⌉"
SHORT, LONG, LONGEST = 3, 9, 9  # tokens of a part of a formula, before a line may end
GLYPHS = {"-": "−", "Σ": "∑", "*": "∗"}

_PIECES = re.compile(
    r"(?P<code>``.+?``|`[^`]+`)"
    r"|(?<![\w*)\]])\*(?P<emphasis>[^\W\d_][^*]*?)\*(?![\w*(])"
    r"|(?<![\w.])(?P<claim>(?:C20|L21|A19|B19|N|S)\.[a-z]\w*|[CLAB](?:19|2[01])\b)"
    r"|(?P<word>'s\b|\(\d\)(?=\s)|\b\d+\.\d+[A-Z]\b|\b[1-3]-?D\b|\b[Aa]ppendix [A-Z]\b|\bSAC\b"
    r"|\be\.g\.|\bi\.e\.|\bet al\."
    r"|(?<![_^({|])\b(?=[A-Za-z-]*[A-Za-z]{2})[A-Za-z]+(?:-[A-Za-z]+)+\b(?!_))",
    re.DOTALL,
)
_TOKEN = re.compile(
    r"(?P<space>\s+)"
    r"|(?P<number>\d+(?:\.\d+)?(?:e[-+]?\d+)?|[½¼])"
    r"|(?P<name>[A-Za-z][\u0302\u0303]?(?:[A-Za-z]+|\d+)*)"
    r"|(?P<greek>[α-ωϑϕΑ-ΡΤ-Ωℓℝ∂][\u0302\u0303]?)"
    r"|(?P<other>.)",
    re.DOTALL,
)
# An index is letters and digits, but ends where digits are followed by a Greek letter; a comma
# without a space goes on, and so do primes.
_INDEX = re.compile(
    r"[-·]?(?:[A-Za-z]+(?:'(?![a-z]))*|[α-ωΑ-Ω](?:'(?![a-z]))*|\d+(?![α-ωΑ-Ω]))+(?:,(?:[A-Za-z]+|\d+)(?![A-Za-z0-9_(]))*|\d+|[*∞]"
)


@dataclass(frozen=True)
class Token:
    """A token, and where a formula may use it.

    Attributes:
        text: As it stands.
        mathml: What it is in a formula; empty if it is prose.
        role: ``"name"``, ``"operator"``, ``"open"``, ``"close"``, ``"mark"``, ``"space"`` or
            ``"prose"``.
        strong: Whether it alone makes a run a formula.
    """

    text: str
    mathml: str
    role: str
    strong: bool = False


def paragraphs(text: str, claims: Collection[str] = ()) -> str:
    """A section of a docstring as HTML: paragraphs, lists, and indented lines as displays.

    Args:
        text: The section.
        claims: Ids of claims that the page has, to be linked.

    Example:
        >>> paragraphs("Rows sum to one.")
        '<p>Rows sum to one.</p>'
    """
    html = []
    for block in re.split(r"\n\s*\n", text.strip("\n")):
        lines = block.splitlines()
        mark = next((mark for mark in (r"- ", r"\d+\. ") if re.match(mark, block)), None)
        if mark:
            items = re.split(rf"^{mark}", block, flags=re.MULTILINE)[1:]
            listed = "".join(f"<li>{inline(' '.join(item.split()), claims)}</li>" for item in items)
            tag = "ul" if mark == "- " else "ol"
            html.append(f"<{tag}>{listed}</{tag}>")
        elif lines and all(line.startswith("  ") for line in lines):
            rows = "".join(f"<div>{inline(line.strip(), claims)}</div>" for line in lines)
            html.append(f'<div class="display">{rows}</div>')
        elif block.strip():
            html.append(f"<p>{inline(' '.join(block.split()), claims)}</p>")
    return "\n".join(html)


def inline(text: str, claims: Collection[str] = ()) -> str:
    """One line as HTML.

    Args:
        text: The line.
        claims: Ids of claims that the page has, to be linked.

    Example:
        >>> inline("a head for K²")
        'a head for <math><msup><mi>K</mi><mn>2</mn></msup></math>'
    """
    text = re.sub("[ŴÂ](?![a-z])", lambda m: unicodedata.normalize("NFD", m[0]), text)
    html, position = [], 0
    for match in _PIECES.finditer(text):
        html.append(_formulas(text[position : match.start()]))
        position = match.end()
        kind, whole = match.lastgroup, match[0]
        if kind == "code":
            html.append(f"<code>{escape(whole.strip('`'))}</code>")
        elif kind == "emphasis":
            html.append(f"<em>{inline(match['emphasis'], claims)}</em>")
        elif kind == "claim" and whole in claims:
            html.append(f'<a href="#{anchor(whole)}">{whole}</a>')
        else:
            html.append(escape(whole))
    html.append(_formulas(text[position:]))
    return "".join(html)


def anchor(claim: str) -> str:
    """The anchor of a claim.

    Example:
        >>> anchor("C20.lemma1")
        'c20-lemma1'
    """
    return claim.lower().replace(".", "-")


def mentioned(text: str) -> list[str]:
    """The ids of claims that a text names.

    Example:
        >>> mentioned("By S.finite and C20.lemma1.")
        ['S.finite', 'C20.lemma1']
    """
    names = (match["claim"] for match in _PIECES.finditer(text))
    return [name for name in names if name and "." in name]


def _formulas(text: str) -> str:
    """Text without code, emphasis and claims: its formulas in MathML, the rest escaped."""
    tokens = list(_tokens(text))
    html, run, depth = [], list[Token](), 0

    def close() -> None:
        html.append(_run(run))
        run.clear()

    for position, token in enumerate(tokens):
        depth += (token.role == "open") - (token.role == "close")
        ends = token.role == "prose" or (token.role == "mark" and depth <= 0)
        inside = depth > 0 and token.text != "a"
        if token.text in ARTICLES and not inside and not _beside_operator(tokens, position):
            ends = True
        if ends:
            close()
            html.append(escape(token.text, quote=False))
            depth = 0
        else:
            run.append(token)
    close()
    return "".join(html)


def _beside_operator(tokens: Sequence[Token], position: int) -> bool:
    """Whether a letter that may be an article stands by an operator, or opens a bracket."""
    following = tokens[position + 1] if position + 1 < len(tokens) else None
    if following is not None and following.role == "open":
        return True
    for step in (1, -1):
        at = position + step
        if 0 <= at < len(tokens) and tokens[at].role == "space":
            at += step
        if 0 <= at < len(tokens) and tokens[at].role == "operator":
            return True
    return False


def _run(run: list[Token]) -> str:
    """A run as a formula, without what does not belong to it at either end."""
    if not run:
        return ""
    for position in _unmatched(run):
        middle = escape(run[position].text, quote=False)
        return _run(run[:position]) + middle + _run(run[position + 1 :])
    edge = ("space", "mark")
    start, end = 0, len(run)
    while start < end and (run[start].role in edge or run[start].text in "-/*"):
        if run[start].text == "-" and start + 1 < end and run[start + 1].role == "name":
            break
        start += 1
    while end > start and (run[end - 1].role in edge or run[end - 1].text in "-/*'"):
        end -= 1
    inside = run[start:end]
    if not any(token.strong for token in inside):
        return escape("".join(token.text for token in run), quote=False)
    before, after = (
        escape("".join(token.text for token in part), quote=False)
        for part in (run[:start], run[end:])
    )
    chunks = [_row(chunk) for chunk in _chunks(inside)]
    formula = f"<math>{'</math><wbr><math>'.join(filter(None, chunks))}</math>"
    return f"{before}{formula}{after}"


def _chunks(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """A formula in parts between which a line may end: before relations and sums.

    Browsers do not break a formula themselves.
    """
    chunk: list[Token] = []
    depth = 0
    for position, token in enumerate(tokens):
        depth += (token.role == "open") - (token.role == "close")
        before = tokens[max(position - 1, 0)].role
        beside = {each.role for each in tokens[max(position - 1, 0) : position + 2]}
        spaced = token.role == "space" and (before == "mark" or "operator" not in beside)
        breaks = (spaced and len(chunk) > LONG) or (
            token.text in RELATIONS + "+" or (token.text == "/" and before == "space")
        )
        if breaks and len(chunk) > (SHORT if depth == 0 else LONGEST):
            yield chunk
            chunk = []
            if token.role == "operator":
                token = replace(token, mathml=token.mathml.replace("<mo>", '<mo form="infix">', 1))
        chunk.append(token)
    yield chunk


def _unmatched(run: Sequence[Token]) -> list[int]:
    """The first bracket that has no partner in the run."""
    waiting = []
    for position, token in enumerate(run):
        if token.role == "open":
            waiting.append(position)
        elif token.role == "close":
            if not waiting:
                return [position]
            waiting.pop()
    return waiting[:1]


def _row(tokens: Sequence[Token]) -> str:
    """The MathML of tokens, with a thin space where names are set side by side."""
    parts = []
    for position, token in enumerate(tokens):
        if token.role != "space":
            parts.append(token.mathml)
            continue
        sides = [tokens[at].role for at in (position - 1, position + 1) if 0 <= at < len(tokens)]
        if "operator" not in sides and len(sides) == 2:
            parts.append('<mspace width="0.25em"></mspace>')
    return "".join(parts)


def _tokens(text: str) -> Iterator[Token]:
    """The tokens of a text, each with the scripts behind it."""
    position = 0
    while match := _TOKEN.match(text, position):
        position = match.end()
        kind, whole = str(match.lastgroup), match[0]
        if kind == "space":
            yield Token(whole, "", "space")
            continue
        if kind == "name" and re.fullmatch("[a-z][A-Z]", whole):  # a product: h·D_h
            position, whole = match.start() + 1, whole[0]
            yield _token(kind, whole, "", False)
            continue
        word = kind == "name" and len(whole) > 1
        scripts, end = (
            ({}, position)
            if word and text[position : position + 1] == "'"
            else _scripts(text, position)
        )
        if kind == "other" and whole not in CLOSING + "Σ∏∫|‖√":
            scripts, end = {}, position
        if whole == "Σ" and re.match("[),.;⁻²ᵀ]|$", text[match.end() :]):
            kind = "greek"  # a matrix: a sum has an index, or what is summed, behind it
        token = _token(kind, whole, text[end : end + 1], bool(scripts))
        if scripts and token.mathml:
            position = end
            below, above = scripts.get("below", ""), scripts.get("above", "")
            tag = "msubsup" if below and above else "msub" if below else "msup"
            mathml = f"<{tag}>{token.mathml}{below}{above}</{tag}>"
            whole = text[match.start() : end]
            token = Token(whole, mathml, token.role, True)
        yield token


def _token(kind: str, whole: str, following: str, scripted: bool) -> Token:
    if kind == "number":
        return Token(whole, f"<mn>{whole}</mn>", "name")
    if kind == "greek":
        return Token(whole, f"<mi>{whole}</mi>", "name", True)
    if kind == "name":
        letters = re.sub("[\u0302\u0303]", "", whole)
        if len(letters) == 1 or (letters[1:].isdigit() and len(letters) == 2):
            return Token(whole, f"<mi>{whole}</mi>", "name", whole not in ARTICLES)
        if (whole in FUNCTIONS and following == "(") or (scripted and letters.isalpha()):
            return Token(whole, f'<mi mathvariant="normal">{whole}</mi>', "name")
        if letters.isupper() and len(letters) <= 3:
            return Token(whole, "".join(f"<mi>{letter}</mi>" for letter in whole), "name")
        return Token(whole, "", "prose")
    glyph = escape(GLYPHS.get(whole, whole))
    if whole in OPERATORS:
        return Token(whole, f"<mo>{glyph}</mo>", "operator", True)
    if whole in "-/*!":
        return Token(whole, f"<mo>{glyph}</mo>", "operator")
    if whole in "|‖":
        bar = f'<mo stretchy="false" lspace="0" rspace="0">{glyph}</mo>'
        return Token(whole, bar, "name", True)
    if whole in OPENING + CLOSING:
        role = "open" if whole in OPENING else "close"
        return Token(whole, f'<mo stretchy="false">{glyph}</mo>', role, whole in "⌊⌈")
    if whole in "…":
        return Token(whole, "<mo>…</mo>", "name")
    if whole in ",;:":
        return Token(whole, f"<mo>{glyph}</mo>", "mark")
    return Token(whole, "", "prose")


def _scripts(text: str, position: int) -> tuple[dict[str, str], int]:
    """The scripts that begin at a place, and where they end."""
    scripts: dict[str, str] = {}
    while position < len(text):
        for side, table in (("above", RAISED), ("below", LOWERED)):
            end = position
            while end < len(text) and text[end] in table:
                end += 1
            if end > position:
                scripts[side] = scripts.get(side, "") + _script(
                    "".join(table[c] for c in text[position:end])
                )
                position = end
                break
        else:
            if text[position] == "'" and not re.match(r"s\b|[a-z]{2}", text[position + 1 :]):
                scripts["above"] = scripts.get("above", "") + "<mo>′</mo>"
                position += 1
                continue
            index = _index(text, position + 1) if text[position] in "_^" else None
            if index is None:
                break
            side = "below" if text[position] == "_" else "above"
            scripts[side] = scripts.get(side, "") + index[0]
            position = index[1]
    return {
        side: f"<mrow>{html}</mrow>" if html.count("</") > 1 else html
        for side, html in scripts.items()
    }, position


def _index(text: str, position: int) -> tuple[str, int] | None:
    """What stands behind `_` or `^`: a group in brackets, or a word, and where it ends."""
    if text[position : position + 1] in ("(", "{"):
        depth = 0
        for end in range(position, len(text)):
            depth += (text[end] in "({") - (text[end] in ")}")
            if not depth:
                return _script(text[position + 1 : end]), end + 1
        return None
    match = _INDEX.match(text, position)
    return (_script(match[0]), match.end()) if match else None


def _script(text: str) -> str:
    """A script, in which everything is mathematics."""
    if re.fullmatch(r"[A-Za-z]{3,}", text) or text in WORDS_BELOW:
        return f'<mi mathvariant="normal">{text}</mi>'
    if "," in text and " " not in text and "(" not in text:
        return "<mo>,</mo>".join(map(_script, text.split(",")))
    if re.fullmatch(r"[-·]?(?:(?:[A-Za-z]|[α-ωΑ-Ω])'*|\d)+", text):
        marks = {"-": "<mo>−</mo>", "·": "<mo>·</mo>", "'": "<mo>′</mo>"}
        return "".join(
            marks.get(part) or (f"<mn>{part}</mn>" if part.isdigit() else f"<mi>{part}</mi>")
            for part in re.findall(r"[-·']|[^\W\d]|\d+", text)
        )
    tokens = [
        token
        if token.mathml or token.role == "space"
        else Token(token.text, f"<mtext>{escape(token.text)}</mtext>", "name")
        for token in _tokens(text)
    ]
    return _row(tokens)
