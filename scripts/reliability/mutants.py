"""The small errors that `mutation.py` puts into the program, one at a time: the mutants.

| in                         | is put                                                             |
|----------------------------|--------------------------------------------------------------------|
| a comparison               | the operators and truth values that subsume all others (below)     |
| `a and b`, `a or b`        | either operand alone                                               |
| any other condition        | `True`, `False`                                                    |
| `not a`, `-a`              | `a`                                                                |
| `a + b` and its like       | another operator, also in `a += b`                                 |
| a number n                 | n + 1, n - 1                                                       |
| `True`, `False`            | the other                                                          |
| a string                   | the string and a `~`                                               |
| a display, a dictionary    | one element less                                                   |
| a slice                    | one bound less                                                     |
| a loop, a comprehension    | nothing to run over                                                |
| a call or a stored value   | `pass` in place of the statement                                   |
| `break`, `continue`        | the other                                                          |
| `min`, `any`, `sorted`, …  | `max`, `all`, the argument itself, …                               |

For `<` it is enough to try `<=`, `!=` and `False`: tests that notice these notice every other
change of the comparison (Kaminski, Ammann and Offutt, Improving logic-based testing, 2013); so for
the other orders, and for `a and b` without one of its operands.

Left out are docstrings, annotations, decorators, imports, f-strings and other texts of messages,
and `strict=True` of `zip`, which only asserts. Whether a `raise` is reached is a matter of its
condition.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

COMPARISONS: dict[type[ast.cmpop], tuple[str, Sequence[str], Sequence[str]]] = {
    ast.Lt: ("<", ("<=", "!="), ("False",)),
    ast.LtE: ("<=", ("<", "=="), ("True",)),
    ast.Gt: (">", (">=", "!="), ("False",)),
    ast.GtE: (">=", (">", "=="), ("True",)),
    ast.Eq: ("==", ("<=", ">="), ("True", "False")),
    ast.NotEq: ("!=", ("<", ">"), ("True", "False")),
    ast.In: ("in", (), ("True", "False")),
    ast.NotIn: ("not in", (), ("True", "False")),
    ast.Is: ("is", (), ("True", "False")),
    ast.IsNot: ("is not", (), ("True", "False")),
}
ARITHMETIC: dict[type[ast.operator], tuple[str, Sequence[str]]] = {
    ast.Add: ("+", ("-", "*")),
    ast.Sub: ("-", ("+",)),
    ast.Mult: ("*", ("+", "//")),
    ast.Div: ("/", ("*", "//")),
    ast.FloorDiv: ("//", ("*", "%")),
    ast.Mod: ("%", ("//", "+")),
    ast.Pow: ("**", ("*",)),
    ast.BitOr: ("|", ("&", "^")),
    ast.BitAnd: ("&", ("|",)),
    ast.BitXor: ("^", ("|",)),
    ast.MatMult: ("@", ("*",)),
    ast.LShift: ("<<", (">>",)),
    ast.RShift: (">>", ("<<",)),
}
CALLS = {"min": "max", "max": "min", "any": "all", "all": "any"}
WITHOUT = ("abs", "sorted", "reversed", "set")  # the argument alone instead
MESSAGES = {"where", "what", "reason", "text", "message"}  # parameters that only messages show
# Keywords that only messages show, and zip's.
MESSAGE_KEYWORDS = {"help", "prog", "description", "epilog", "metavar", "strict"}
TYPES = ("Callable", "Mapping", "Sequence", "dict", "list", "set", "tuple")  # as in list[int]

Edit = tuple[int, int, bytes]  # from byte, to byte, what stands there instead


@dataclass(frozen=True)
class Mutant:
    """One error: where it stands, and the lines of the program before and after, without indents.

    Attributes:
        module: The file, from the root of the tree.
        function: A function, a `Class.method`, or "" for what stands outside.
        before: The lines that change.
        after: What they become.
        number: How many times the same change stands in the function before this one.
        edit: The change of the file's bytes.
    """

    module: str
    function: str
    before: str
    after: str
    number: int
    edit: Edit

    @property
    def key(self) -> tuple[str, str, str, str, int]:
        """What names it, wherever its lines are moved."""
        return self.module, self.function, self.before, self.after, self.number

    def applied(self, code: bytes) -> bytes:
        """The module with the error."""
        start, end, text = self.edit
        return code[:start] + text + code[end:]

    def __str__(self) -> str:
        location = f"{self.module}: {self.function or 'outside functions'}"
        location += f" (number {self.number + 1} of these)" * bool(self.number)
        return f"{location}\n    - {self.before}\n    + {self.after}"


def mutants_of(module: str, code: bytes, messages: Mapping[str, Sequence[str]]) -> list[Mutant]:
    """Every mutant of a module that is another program.

    Args:
        module: The file, from the root of the tree.
        code: What it holds.
        messages: For functions by name their parameters (`parameters`).
    """
    tree = ast.parse(code)
    source = _Source(code)
    spans = [(name, source.span(node)) for name, node in functions(tree)]
    counts: Counter[tuple[str, str, str]] = Counter()
    mutants = []
    statements = [(*source.span(node), ast.dump(node)) for node in tree.body]
    for start, end, text in sorted(set(_edits(tree, source, messages))):
        enclosing = [name for name, (first, last) in spans if first <= start and end <= last]
        first, last, dumped = next(s for s in statements if s[0] <= start and end <= s[1])
        try:
            (node,) = ast.parse(code[first:start] + text + code[end:last]).body
        except SyntaxError:
            continue
        if ast.dump(node) != dumped:
            location = (enclosing[0] if enclosing else "", *source.lines(start, end, text))
            mutants.append(Mutant(module, *location, counts[location], (start, end, text)))
            counts[location] += 1
    return mutants


def functions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    """The functions of a module with their names, and its methods as `Class.method`."""
    for node in tree.body:
        nodes = node.body if isinstance(node, ast.ClassDef) else [node]
        prefix = f"{node.name}." if isinstance(node, ast.ClassDef) else ""
        yield from ((prefix + n.name, n) for n in nodes if isinstance(n, ast.FunctionDef))


def parameters(files: Sequence[Path]) -> dict[str, Sequence[str]]:
    """For each function, and each class with fields or `__init__`, its parameters in order."""
    functions: dict[str, Sequence[str]] = {}
    classes: dict[str, Sequence[str]] = {}
    for node in (node for file in files for node in ast.walk(ast.parse(file.read_bytes()))):
        if isinstance(node, ast.FunctionDef):
            functions[node.name] = [argument.arg for argument in node.args.args]
        elif isinstance(node, ast.ClassDef):
            targets = [field.target for field in node.body if isinstance(field, ast.AnnAssign)]
            classes[node.name] = [name.id for name in targets if isinstance(name, ast.Name)]
            for statement in node.body:
                if isinstance(statement, ast.FunctionDef) and statement.name == "__init__":
                    classes[node.name] = [argument.arg for argument in statement.args.args[1:]]
    return functions | classes


class _Source:
    """The bytes of a module, and where its nodes stand in them."""

    def __init__(self, code: bytes) -> None:
        self.code = code
        self.starts = [0]
        for line in code.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))

    def span(self, node: ast.AST) -> tuple[int, int]:
        """From which byte to which a node stands."""
        first, last = node.lineno, node.end_lineno  # type: ignore[attr-defined]
        start = self.starts[first - 1] + node.col_offset  # type: ignore[attr-defined]
        return start, self.starts[last - 1] + node.end_col_offset  # type: ignore[attr-defined]

    def text(self, node: ast.AST) -> bytes:
        """What a node looks like, in brackets if it must be."""
        start, end = self.span(node)
        simple = isinstance(node, ast.Name | ast.Constant | ast.Call | ast.Attribute)
        return self.code[start:end] if simple else b"(" + self.code[start:end] + b")"

    def between(self, left: ast.AST, right: ast.AST, operator: str) -> tuple[int, int]:
        """Where the operator between two operands stands."""
        start, end = self.span(left)[1], self.span(right)[0]
        pattern = r"\s+".join(map(re.escape, operator.split())).encode()
        first, last = next(re.finditer(pattern, self.code[start:end])).span()
        return start + first, start + last

    def lines(self, start: int, end: int, text: bytes) -> tuple[str, str]:
        """The lines that a change touches, before and after, with single spaces."""
        first = self.code.rfind(b"\n", 0, start) + 1
        last = self.code.find(b"\n", end)
        last = len(self.code) if last < 0 else last
        before, after = self.code[first:last], self.code[first:start] + text + self.code[end:last]
        return " ".join(before.decode().split()), " ".join(after.decode().split())


def _edits(
    tree: ast.Module, source: _Source, messages: Mapping[str, Sequence[str]]
) -> Iterator[Edit]:
    for node in _mutable_nodes(tree, messages):
        if isinstance(node, ast.stmt):
            yield from _of_statement(node, source)
        elif isinstance(node, ast.expr):
            yield from _of_expression(node, source)
        elif isinstance(node, ast.comprehension):
            yield (*source.span(node.iter), b"()")
            for test in node.ifs:
                yield from _of_condition(test, source)


def _mutable_nodes(node: ast.AST, messages: Mapping[str, Sequence[str]]) -> Iterator[ast.AST]:
    """The nodes that may be changed."""
    left_out: list[ast.AST] = []
    if isinstance(node, ast.JoinedStr | ast.Import | ast.ImportFrom):
        return
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node):
        left_out.append(node.body[0])
    for name in ("decorator_list", "bases"):
        left_out += getattr(node, name, [])
    if isinstance(node, ast.Subscript) and getattr(node.value, "id", "") in TYPES:
        left_out.append(node.slice)
    left_out += filter(None, [getattr(node, name, None) for name in ("annotation", "returns")])
    if isinstance(node, ast.Call):
        name = getattr(node.func, "id", getattr(node.func, "attr", ""))
        names = messages.get(name, ())
        left_out += [a for a, p in zip(node.args, names, strict=False) if p in MESSAGES]
        left_out += [each for each in node.keywords if each.arg in MESSAGES | MESSAGE_KEYWORDS]
        left_out += node.args if name == "TypeVar" else []
    raised = getattr(node, "exc", None)  # of `raise`
    if isinstance(raised, ast.Call) and getattr(raised.func, "id", "") not in messages:
        return
    yield node
    for child in ast.iter_child_nodes(node):
        if child not in left_out:
            yield from _mutable_nodes(child, messages)


def _of_statement(node: ast.stmt, source: _Source) -> Iterator[Edit]:
    span = source.span(node)
    match node:
        case ast.Expr(value=ast.Call() | ast.Yield() | ast.YieldFrom()) | ast.AugAssign():
            yield (*span, b"pass")
        case ast.Assign(targets=[ast.Subscript() | ast.Attribute()]):
            yield (*span, b"pass")
        case ast.Break():
            yield (*span, b"continue")
        case ast.Continue():
            yield (*span, b"break")
            yield (*span, b"pass")
        case ast.For():
            yield (*source.span(node.iter), b"()")
        case ast.If() | ast.While():
            yield from _of_condition(node.test, source)
    if isinstance(node, ast.AugAssign):
        text, others = ARITHMETIC[type(node.op)]
        between = source.between(node.target, node.value, text + "=")
        yield from ((*between, f"{other}=".encode()) for other in others)


def _of_condition(node: ast.expr, source: _Source) -> Iterator[Edit]:
    """What comparisons get by themselves, and so need not get here."""
    if not isinstance(node, ast.Compare | ast.BoolOp | ast.Constant):
        yield from ((*source.span(node), text) for text in (b"True", b"False"))


def _of_expression(node: ast.expr, source: _Source) -> Iterator[Edit]:
    span = source.span(node)
    match node:
        case ast.Compare():
            operands = [node.left, *node.comparators]
            for left, right, operator in zip(operands, operands[1:], node.ops, strict=False):
                text, others, values = COMPARISONS[type(operator)]
                texts = [getattr(each, "value", None) for each in (left, right)]
                others = () if any(isinstance(each, str) for each in texts) else others
                between = source.between(left, right, text)
                yield from ((*between, other.encode()) for other in others)
                yield from ((*span, value.encode()) for value in values)
        case ast.BoolOp():
            word = b" and " if isinstance(node.op, ast.And) else b" or "
            for value in node.values:
                rest = [source.text(each) for each in node.values if each is not value]
                yield (*span, b"(" + word.join(rest) + b")")
        case ast.IfExp():
            yield from _of_condition(node.test, source)
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            yield (*span, source.text(node.operand))
        case ast.BinOp():
            text, swaps = ARITHMETIC[type(node.op)]
            between = source.between(node.left, node.right, text)
            yield from ((*between, other.encode()) for other in swaps)
        case ast.Constant(value=bool()):
            yield (*span, str(not node.value).encode())
        case ast.Constant(value=int() | float() as value):
            yield (*span, repr(value + 1).encode())
            yield (*span, f"({value - 1!r})".encode())
        case ast.Constant(value=str() | bytes()) if source.code[span[1] - 1 : span[1]] in b"\"'":
            yield span[1] - 1, span[1] - 1, b"~"
        case ast.List() | ast.Tuple() | ast.Set():
            yield from _shorter(node, source)
        case ast.Dict():
            for key, value in zip(node.keys, node.values, strict=True):
                start = source.span(key)[0] if key else source.span(value)[0] - 2
                yield from _removed(start, source.span(value)[1], source, span[1])
        case ast.Subscript(slice=ast.Slice() as part):
            for bound in filter(None, (part.lower, part.upper, part.step)):
                yield (*source.span(bound), b"")
        case ast.Call(func=ast.Name(id=name), args=[first, *_]):
            if name in CALLS:
                yield (*source.span(node.func), CALLS[name].encode())
            if name in WITHOUT:
                yield (*span, source.text(first))


def _shorter(node: ast.List | ast.Tuple | ast.Set, source: _Source) -> Iterator[Edit]:
    """One element less; of a tuple of two a tuple of one is left."""
    if not isinstance(node.ctx, ast.Load) if not isinstance(node, ast.Set) else len(node.elts) < 2:
        return
    for element in node.elts:
        start, end = source.span(element)
        if isinstance(node, ast.Tuple) and len(node.elts) < 3:
            rest = b"".join(
                source.text(other) + b"," for other in node.elts if other is not element
            )
            yield (*source.span(node), b"(" + rest + b")")
        else:
            yield from _removed(start, end, source, source.span(node)[1])


def _removed(start: int, end: int, source: _Source, limit: int) -> Iterator[Edit]:
    """Without this part, and the comma after it or before it."""
    after = re.compile(rb"\s*,\s*").match(source.code, end, limit)
    if after:
        yield start, after.end(), b""
        return
    before = re.search(rb",\s*$", source.code[:start])
    yield before.start() if before else start, end, b""
