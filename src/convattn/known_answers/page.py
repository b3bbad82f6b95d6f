"""The suite's page: each vision transformer's heads, fields and Jacobians as pictures.

Pictures are SVG in the page, written from the numbers alone, so that the same numbers give the same
bytes.
"""

import inspect
from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np
from jaxtyping import Float

from convattn.known_answers.networks import KnownNetwork

LEVELS = 12  # of brightness, on either side of 0
SIDE = 84  # of a picture, in pixels of the screen
Entry = tuple[KnownNetwork, dict[str, np.ndarray], Any]

_STYLE = """
:root { color-scheme: light }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 68rem; padding: 0 1rem }
pre { background: #f4f4f4; overflow-x: auto; padding: .7rem }
code { font-size: 13px }
figure { display: inline-block; margin: .3rem .6rem .3rem 0; vertical-align: top }
figcaption { font-size: 12px; max-width: 7rem }
svg { border: 1px solid #999; display: block }
h2 { border-top: 1px solid #ccc; padding-top: 1rem }
"""

_USE = """import json, torch, timm
from safetensors import safe_open
from safetensors.torch import load_file

name = "10-corner"
with safe_open(f"{name}.safetensors", "pt") as file:
    arguments = json.loads(file.metadata()["arguments"])
model = timm.models.VisionTransformer(**arguments).eval()
model.load_state_dict(load_file(f"{name}.safetensors"))

with safe_open(f"{name}.truth.safetensors", "pt") as file:
    facts = json.loads(file.metadata()["truth"])
truth = load_file(f"{name}.truth.safetensors")

images = truth["images"].requires_grad_()              # [4, channels, rows, columns]
logits = model(images)
print((logits - truth["logits"]).abs().max(), facts["bound"])
gradient, = torch.autograd.grad(logits[:, 0].sum(), images)
print((gradient - truth["logits.jacobian"][:, 0]).abs().max())

tokens = model.forward_intermediates(images, return_prefix_tokens=True, output_fmt="NLC",
                                     intermediates_only=True)
block = facts["values"]["value1"] - 1                  # after this block value 1 is there
grid, prefix = tokens[block]
stream = torch.cat([prefix, grid], dim=1)              # the class token first
half = stream.shape[-1] // 2
c = truth["value1.channels"]
value = (stream[..., c] - stream[..., half + c]) / 2
print((value[:, truth["value1.tokens"]] - truth["value1"]).abs().max())
"""

_INTRODUCTION = """
<p>Each model is a stock <code>timm.models.VisionTransformer</code> in float32 that computes a small
convolutional network, compiled by <code>convattn compile --suite</code>. What every head looks at,
what every token holds, on which pixels it can depend and its derivatives are known exactly.</p>
<h3>Use one</h3>
<p>timm, torch and safetensors are enough. The three differences that it prints are rounding, the
first of them within the bound beside it.</p>
<pre><code>{use}</code></pre>
<h3>What the truth file holds</h3>
<ul>
<li><code>images</code> [4, channels, rows, columns], in [0, 1]; <code>logits</code> [4,
classes].</li>
<li><code>logits.field</code> [rows, columns]: the pixels on which the logits can depend.
<code>logits.jacobian</code> [4, classes, channels, rows, columns]: their derivatives.</li>
<li><code>valueN</code> [4, tokens, features]: the N-th value that the network stores, here counted
from 1. <code>valueN.tokens</code> says which tokens of the sequence hold it (0 is the class token),
<code>valueN.channels</code> where: a feature is half of the difference of channel c and channel c +
width/2.</li>
<li><code>valueN.field</code> [tokens, rows, columns]: outside of it no pixel matters to that
token's value, on any image. Tokens that hold a value which nothing reads are left out.
<code>valueN.jacobian</code> [tokens, features, channels, rows, columns]: its derivatives on the
first image.</li>
<li>In the metadata, <code>truth</code>: after how many blocks each value is there
(<code>values</code>); for each block and head what it looks at (<code>heads</code>); the bound on
the difference of the logits (<code>bound</code>).</li>
</ul>
<h3>What heads attend to</h3>
<p>Token 0 of the sequence is the class token, token 1 + row · columns + column that of the
grid.</p>
<ul>
<li><i>offset</i>: each token of the grid attends to the token at <code>where</code> (rows down,
columns to the right). Where there is none, it attends to the class token, whose value is zero, so
that the border is zero padding; with the <code>border</code> <i>circular</i> the grid goes around.
Only tokens whose row and column are multiples of <code>every</code> take part; the others attend to
the class token. The class token attends to itself.</li>
<li><i>self</i>: the same with the offset (0, 0), for values of the token itself and for
biases.</li>
<li><i>mean</i>: the class token attends to all tokens that hold the value alike. <i>point</i>: the
class token attends to the token in row and column <code>where</code>. In a block with such a head
the class token alone is served: a <i>self</i> head there is its bias, and what tokens of the grid
attend to is read by nothing.</li>
<li><i>unused</i>: all tokens attend to all alike, and nothing is passed on.</li>
</ul>
<p>To see it in timm, set <code>block.attn.fused_attn = False</code> and hook
<code>block.attn.attn_drop</code>: [image, head, query, key].</p>
<h3>How exact</h3>
<p>Values, logits and Jacobians are those of the network in exact arithmetic, as its weights and the
pixels are multiples of powers of two. The models round to float32: logits are within
<code>bound</code> on these four images, and derivatives differed by at most 3·10⁻⁴ of the largest,
also outside of fields. Where the logits' field is the whole image, the fields of tokens still tell
methods apart. Where a ReLU is off, derivatives are zero inside of a field, too.</p>
<p>Pictures: red is positive, blue negative, each by its own largest number. Of heads the pale cell
is the query, the red one what it attends to; a full square is a mean. <code>suite.json</code> has
the metadata of all models and the digests of their files.</p>
"""


def suite_page(entries: Sequence[Entry]) -> bytes:
    """The page in UTF-8, which asks for no other file.

    Args:
        entries: Of each network, it, the arrays of its truth file, and what is no array there.
    """
    contents = " · ".join(
        f'<a href="#{network.name}">{number} {network.name}</a>'
        for number, (network, _, _) in enumerate(entries, 1)
    )
    sections = "".join(_section(number, *entry) for number, entry in enumerate(entries, 1))
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Vision transformers with known answers</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>Vision transformers with known answers</h1>
{_INTRODUCTION.format(use=escape(_USE))}
<p>{contents}</p>
{sections}
</body>
</html>
""".encode()


def _section(number: int, network: KnownNetwork, arrays: dict[str, np.ndarray], facts: Any) -> str:
    size = facts["arguments"]
    images = "".join(
        _figure(picture(image.mean(0)), f"image {n}: logits {_listed(arrays['logits'][n])}")
        for n, image in enumerate(arrays["images"])
    )
    reach = max([1, *(abs(w) for block in facts["heads"] for head in block for w in _offset(head))])
    heads = "".join(
        f"<p>Block {n}</p>" + "".join(_figure(_head(head, reach), _said(head)) for head in block)
        for n, block in enumerate(facts["heads"], 1)
    )
    values = "".join(_value(name, arrays, after) for name, after in facts["values"].items())
    best = int(arrays["logits"][0].argmax())
    last = _figure(picture(arrays["logits.field"]), "the logits: field")
    last += _figure(
        picture(arrays["logits.jacobian"][0, best].sum(0)),
        f"Jacobian of class {best}, image 0, summed over colours",
    )
    return f"""<h2 id="{network.name}">{number:02}-{network.name}</h2>
<p>{escape(network.sentence[0].upper() + network.sentence[1:])}. {size["depth"]} blocks of width
{size["embed_dim"]}, {size["num_heads"]} heads, {size["img_size"]} × {size["img_size"]} pixels,
patches of {size["patch_size"]}; logits within {facts["bound"]:.2g}.</p>
{images}
<details><summary>The network, in JAX</summary><pre><code>{escape(source(network))}</code></pre>
</details>
<h3>Heads</h3>
{heads}
<h3>Fields and Jacobians, of one token and of the logits</h3>
{values}{last}
"""


def source(network: KnownNetwork) -> str:
    """The lines that define it.

    >>> from convattn.known_answers.networks import NETWORKS
    >>> source(NETWORKS[0]).splitlines()[0]
    'def _shift(images: Any) -> Any:'
    """
    return inspect.cleandoc(inspect.getsource(network.function))


def _value(name: str, arrays: dict[str, np.ndarray], after: int) -> str:
    tokens = len(arrays[f"{name}.tokens"])
    columns = round(tokens**0.5)
    middle = tokens // 2 + columns // 2 if tokens > 1 else 0
    token = int(arrays[f"{name}.tokens"][middle])
    field = picture(arrays[f"{name}.field"][middle])
    jacobian = picture(arrays[f"{name}.jacobian"][middle, 0].sum(0))
    said = f"{name}, after block {after}, token {token}"
    return _figure(field, f"{said}: field") + _figure(jacobian, f"{name}: Jacobian, first feature")


def _offset(head: Any) -> Sequence[int]:
    return head["where"] if head["kind"] == "offset" else (0, 0)


def _said(head: Any) -> str:
    if head["kind"] in ("offset", "point"):
        return f"{head['kind']} ({head['where'][0]}, {head['where'][1]})"
    return str(head["kind"])


def _head(head: Any, reach: int) -> str:
    """The offsets around a query, which is the faint cell in the middle."""
    cells = np.zeros((2 * reach + 1, 2 * reach + 1))
    if head["kind"] in ("offset", "self"):
        row, column = _offset(head)
        cells[reach, reach] = -0.25
        cells[reach + row, reach + column] = 1.0
    elif head["kind"] == "mean":
        cells[:] = 0.5
    return picture(cells, scale=1.0)


def picture(numbers: Float[np.ndarray, "rows columns"], scale: float | None = None) -> str:
    """Numbers as an SVG: white is 0, dark the largest; blue where they are negative.

    >>> picture(np.array([[0.0, 1.0]])).count("<path")
    1
    """
    numbers = np.asarray(numbers, float)
    largest = scale or float(np.abs(numbers).max()) or 1.0
    rows, columns = numbers.shape
    levels = np.rint(numbers / largest * LEVELS).astype(int)
    paths = []
    for level in sorted({*levels.ravel().tolist()} - {0}):
        cells = "".join(f"M{c} {r}h1v1h-1z" for r, c in np.argwhere(levels == level).tolist())
        paths.append(f'<path fill="{_colour(level)}" d="{cells}"/>')
    width, height = SIDE, round(SIDE * rows / columns)
    return (
        f'<svg width="{width}" height="{height}" viewBox="0 0 {columns} {rows}" '
        f'shape-rendering="crispEdges">{"".join(paths)}</svg>'
    )


def _colour(level: int) -> str:
    rest = 255 - round(215 * abs(level) / LEVELS)
    return f"rgb({rest},{rest},255)" if level < 0 else f"rgb(255,{rest},{rest})"


def _figure(drawn: str, caption: str) -> str:
    return f"<figure>{drawn}<figcaption>{escape(caption)}</figcaption></figure>\n"


def _listed(numbers: np.ndarray) -> str:
    return ", ".join(f"{number:.3g}" for number in numbers[:4]) + (
        ", …" if len(numbers) > 4 else ""
    )
