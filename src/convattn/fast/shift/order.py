"""In which order the products of the shift back end cost least: counted, not tried.

Per token, T offsets and H heads of maps d × w × o (or d × o) take

| way   | matrix products    | mixing of slices | numbers of maps written or read |
|-------|--------------------|------------------|---------------------------------|
| taps  | T·d·o              |                  | (H + T)·d·o, once               |
| heads | H·d·o              | H·T·d            |                                 |
| apart | H·w·(d + o)        | H·T·w            |                                 |

and the first two, where a head has two maps, H·d·w·o products once to make one of them. A number
written takes as long as `MOVED` products of a large matrix product, and a product of a mixture,
whose matrices are as small as T and H, as long as `MIXED` of them (measured on two CPU cores).
"""

from typing import NamedTuple

from convattn.encodings.layer import AttentionLayer
from convattn.fast.maps import out_features

MOVED = 33
MIXED = 12


class Cost(NamedTuple):
    """Attributes:
    `products` of matrix products, `mixed` of mixtures, `moved` numbers.
    """

    products: float
    mixed: float
    moved: float

    @property
    def total(self) -> float:
        """In products."""
        return self.products + MIXED * self.mixed + MOVED * self.moved


def costs(layer: AttentionLayer, offsets: int, tokens: int, features: int) -> dict[str, Cost]:
    """What each way takes that is open to a layer; `"taps"` needs a map.

    Args:
        offsets: How many are read.
        tokens, features: How many tokens, all images together, and how wide. Where a stride leaves
            out queries, those kept; *apart* maps the others too, which is not counted.

    >>> import convattn as ca, jax.numpy as jnp
    >>> layer = ca.conv_to_attention(jnp.ones((3, 3, 4, 5)))
    >>> {way: int(cost.products) for way, cost in costs(layer, 9, 100, 4).items()}
    {'heads': 20000, 'taps': 18000}
    """
    heads, out = layer.heads, out_features(layer, features)
    if layer.value is None and layer.output is None:
        return {"heads": Cost(0.0, tokens * offsets * features, 0.0)}
    once, maps = 0.0, features * out
    if layer.value is not None and layer.output is not None:
        width = layer.value.shape[2]
        once = heads * width * maps
        separate_products = tokens * heads * width * (features + out)
        mixed = tokens * heads * width * offsets
    costs_by_order = {
        "heads": Cost(once + tokens * heads * maps, tokens * heads * offsets * features, 0.0),
        "taps": Cost(once + tokens * offsets * maps, 0.0, (heads + offsets) * maps),
    }
    if once:
        costs_by_order["apart"] = Cost(separate_products, mixed, 0.0)
    return costs_by_order


def cheapest_way(layer: AttentionLayer, offsets: int, tokens: int, features: int) -> str:
    """`"taps"`, `"heads"` or `"apart"`, whichever takes the least time.

    >>> import convattn as ca, jax.numpy as jnp
    >>> layer = ca.conv_to_attention(jnp.ones((3, 3, 768, 768)))
    >>> cheapest_way(layer, 9, 14 * 14, 768), cheapest_way(layer, 9, 8 * 14 * 14, 768)
    ('heads', 'taps')
    """
    expected = costs(layer, offsets, tokens, features)
    return min(expected, key=lambda way: expected[way].total)
