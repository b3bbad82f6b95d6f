"""`AttentionConv`: multi-head self-attention of PyTorch that starts as a convolution.

S.finite in PyTorch, without JAX. The tokens are the N pixels of the padded image, so that every tap
of every query is a key. With ε the uniform weight, T taps and M = log(1 + N(1/ε - 1)),

    out_q = Σ_h Σ_k softmax_k(M·s_h(k - q)) X_k W_h + b

where s_h is the table `scores` of head h at the taps and zero elsewhere. There are T heads with
s_h = 1 at their own tap and the maps W_δ/(1 - ε), and one with s = 0 and -ε/(1 - ε)·Σ_δ W_δ. Their
sum is the convolution (`convattn.constructions.finite` has the proof). Zeros of the padding are
tokens as well, and other fills repeat pixels.

Three back ends compute this function, whatever the parameters are:

- `dense` forms all weights, [heads, queries, keys];
- `flex` gives the scores to `torch.nn.attention.flex_attention`, which need not form them;
- `shift` writes the weights of a head as a_hδ at tap δ beside c_h at every key, so that

      out_q = Σ_δ X_(q+δ) (Σ_h a_hδ W_h) + (Σ_k X_k)(Σ_h c_h W_h) + b,

  weighted shifts of the image and one sum over it. It costs what the convolution costs.

A causal layer of sequences masks the keys after the last tap of a query. N is then the number of
keys that the query sees, so that each query has weights and a sum of its own (S.causal).
"""

import inspect
import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from convattn.torch.plain_convolution import (
    CONVOLUTIONS,
    has_xla_padding,
    reason_to_keep,
    require_no_hooks,
)

BACK_ENDS = ("shift", "dense", "flex")
_FILLS = {"reflect": "REFLECT", "replicate": "EDGE", "circular": "CIRCULAR"}  # in convattn.conv
_PADDING_MODES = ("zeros", *_FILLS)
_FLEX_WIDTH = 16  # features of queries and keys, all zero: the least that a GPU takes
SAME_XLA = "same_xla"  # TensorFlow's rule, as timm's Conv2dSame has it
_NO_WEIGHT = (
    "AttentionConv has no weight, but the model reads or writes one; leave this layer out with "
    "where=, or convert the model after it has used its weights"
)
# The options of a convolution, which the heads are made for.
FIXED = {*inspect.signature(torch.nn.ConvTranspose2d).parameters} - {"bias"}
FIXED |= {"transposed", "upsampling", "axes", "causal"}

Widths = tuple[tuple[int, int], ...]


class AttentionConv(torch.nn.Module):
    """Multi-head self-attention that starts as a convolution.

    Args:
        weight: `[out, in/groups, *K]`, one or two axes.
        bias: `[out]` or None.
        stride, dilation: An integer, or one for each axis.
        padding: (before, after) for each axis, negative where pixels are cut off; or `"same_xla"`,
            TensorFlow's rule; None is no padding.
        groups: Of channels; all share their attention.
        padding_mode: As for `torch.nn.Conv2d`.
        upsampling: Before all that the image gets so many pixels for each of its own, zeros after
            the first, as the stride of a transposed convolution says.
        uniform_weight: ε in (0, 1).
        backend: `"shift"`, `"dense"` or `"flex"`.
        border: `"zeros"`; a register (S.registers) is refused.
        causal: Mask the keys after the last tap of each query of a sequence. With r = d(K-1) and
            zeros for padding, (r, 0); (0, 0), for inputs that are padded before the layer; or
            (r, r), for outputs of which the last r are dropped. What is infinite or NaN reaches no
            output before it. The layer takes whole sequences: it keeps no keys between calls.

    Attributes:
        scores: `[heads, taps]`, taps row-major, in units of M(N).
        output: `[heads, in/groups, out]`, the map of each head.
        uniform_logit: log(ε/(1 - ε)), so that training cannot leave (0, 1).
        bias: `[out]` or None.

    Raises:
        ValueError: For three axes, for options that there are not, and for sizes that do not fit.

    Source: S.finite, S.pad, S.causal of this project's ledger.

    >>> conv = torch.nn.Conv2d(3, 8, 3, stride=2, padding=1)
    >>> layer, image = AttentionConv.from_conv(conv), torch.ones(1, 3, 8, 7)
    >>> layer.heads, torch.allclose(layer(image), conv(image), atol=1e-5)
    (10, True)
    """

    def __init__(
        self,
        weight: Tensor,
        bias: Tensor | None = None,
        *,
        stride: int | Sequence[int] = 1,
        padding: Sequence[Sequence[int]] | str | None = None,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        padding_mode: str = "zeros",
        upsampling: int | Sequence[int] = 1,
        uniform_weight: float = 0.5,
        backend: str = "shift",
        border: str = "zeros",
        causal: bool = False,
    ) -> None:
        super().__init__()
        if border != "zeros":
            raise ValueError(
                f"border={border!r}, but expected 'zeros': this module pads the image; for a "
                "register take convattn.conv_to_attention(kernel, border='register')"
            )
        self.axes = weight.ndim - 2
        if self.axes not in CONVOLUTIONS or not weight.is_floating_point():
            raise ValueError(
                f"weight has {weight.ndim} axes and dtype {weight.dtype}, but expected floats "
                "[out, in/groups, *K] with one or two axes of space"
            )
        if padding_mode not in _PADDING_MODES:
            raise ValueError(
                f"padding_mode={padding_mode!r}, but expected one of {', '.join(_PADDING_MODES)}"
            )
        if not 0 < uniform_weight < 1:
            raise ValueError(f"uniform_weight={uniform_weight}, but expected a number in (0, 1)")
        if len(weight) % groups or (bias is not None and bias.shape != weight.shape[:1]):
            bias_shape = None if bias is None else tuple(bias.shape)
            raise ValueError(
                f"weight.shape={tuple(weight.shape)}, groups={groups} and bias.shape={bias_shape}, "
                "but expected a multiple of groups as out channels, and a bias for each of them"
            )
        self.out_channels, self.in_channels = weight.shape[0], weight.shape[1] * groups
        self.kernel_size, self.groups = tuple(weight.shape[2:]), groups
        self.stride, self.dilation = self._per_axis(stride), self._per_axis(dilation)
        self.upsampling = self._per_axis(upsampling)
        self.padding: Widths | str = self._widths_of(padding)
        self.padding_mode, self.backend, self.causal = padding_mode, backend, causal
        reach = self._reach
        known = [((before, after),) for before, after in ((reach, 0), (0, 0), (reach, reach))]
        lays_zeros = padding_mode == "zeros" and self.upsampling == (1,)
        if causal and not (lays_zeros and self.padding in known):
            raise ValueError(
                f"causal=True with {self.axes} axes, padding={self.padding} of {padding_mode} and "
                f"upsampling={self.upsampling}, but expected a sequence and zeros, one of {known}; "
                f"pass padding=(({reach}, 0),), or leave causal out"
            )
        taps = math.prod(self.kernel_size)
        exact = weight.detach().cpu().double().flatten(2).permute(2, 1, 0)
        uniform = -uniform_weight * exact.sum(0, keepdim=True)
        maps = torch.cat([exact, uniform]) / (1 - uniform_weight)
        factory = {"device": weight.device, "dtype": score_dtype(weight.dtype)}
        logit = math.log(uniform_weight / (1 - uniform_weight))
        trains = weight.requires_grad
        self.output = torch.nn.Parameter(maps.to(weight.device, weight.dtype), trains)
        self.scores = torch.nn.Parameter(torch.eye(taps + 1, taps, **factory), trains)
        self.uniform_logit = torch.nn.Parameter(torch.tensor(logit, **factory), trains)
        self.bias = (
            None
            if bias is None
            else torch.nn.Parameter(bias.detach().clone(), requires_grad=bias.requires_grad)
        )

    @classmethod
    def from_conv(cls, conv: Any, **options: Any) -> "AttentionConv":
        """The layer that is this convolution.

        Args:
            conv: `torch.nn.Conv1d`, `Conv2d`, or one of their transposed forms.
            options: uniform_weight, backend and causal, as above.

        Raises:
            ValueError: For another layer, one whose `forward`, or a method that it calls, is of its
                own or was replaced, and one with hooks, which would not be called.

        >>> conv = torch.nn.ConvTranspose1d(2, 3, 4, stride=2, padding=1)
        >>> image = torch.ones(1, 2, 5)
        >>> torch.allclose(AttentionConv.from_conv(conv)(image), conv(image), atol=1e-5)
        True
        """
        if reason := reason_to_keep(conv):
            raise ValueError(f"conv is {type(conv).__name__}: {reason}; give a Conv1d or Conv2d")
        require_no_hooks("conv", conv)  # parametrisations may stay: they are computed as read
        options |= {"groups": conv.groups, "dilation": conv.dilation}
        bias, weight = conv.bias, conv.weight
        if conv.transposed:
            reach = [d * (k - 1) for d, k in zip(conv.dilation, conv.kernel_size, strict=True)]
            sides = zip(reach, conv.padding, conv.output_padding, strict=True)
            turned = weight.unflatten(0, (conv.groups, -1)).transpose(1, 2).flatten(0, 1)
            turned = turned.flip(*range(2, weight.ndim)).detach()
            turned.requires_grad_(weight.requires_grad)
            widths = tuple((r - p, r - p + extra) for r, p, extra in sides)
            return cls(turned, bias, padding=widths, upsampling=conv.stride, **options)
        padding = SAME_XLA if has_xla_padding(conv) else _widths_now(conv)
        return cls(
            weight,
            bias,
            stride=conv.stride,
            padding=padding,
            padding_mode=conv.padding_mode,
            **options,
        )

    @property
    def heads(self) -> int:
        """The number of heads, of each group."""
        return self.scores.shape[0]

    @property
    def uniform_weight(self) -> Tensor:
        """ε."""
        return torch.sigmoid(self.uniform_logit)

    def forward(self, inputs: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """Attend.

        Args:
            inputs: `[batch, in, *space]`, or one image without the batch.
            output_size: Of a transposed convolution, as PyTorch takes it.

        Returns:
            `[batch, out, *space_out]`.

        Raises:
            ValueError: For inputs of another rank or number of channels, and too small ones.
        """
        if inputs.ndim == self.axes + 1:
            return self(inputs[None], output_size)[0]
        if inputs.ndim != self.axes + 2 or inputs.shape[1] != self.in_channels:
            raise ValueError(
                f"inputs.shape={tuple(inputs.shape)}, but expected [batch, {self.in_channels}, and "
                f"{self.axes} axes of space]"
            )
        tokens = self.padded(inputs, output_size)
        sizes = tuple(
            (size - d * (k - 1) - 1) // s + 1
            for size, d, k, s in zip(
                tokens.shape[2:], self.dilation, self.kernel_size, self.stride, strict=True
            )
        )
        if min(sizes) < 1:
            raise ValueError(
                f"inputs.shape={tuple(inputs.shape)}, but a kernel of {self.kernel_size} taps with "
                f"dilation {self.dilation} has no output there; take larger images"
            )
        tokens, lost = self._without_lost(tokens, sizes)
        if self.backend == "shift" and not self.causal:
            result = self._shift(tokens)
        else:
            attend = {"shift": self._causal, "dense": self._dense, "flex": self._flex}[self.backend]
            attended = attend(tokens, sizes).unflatten(-1, (self.groups, -1))
            maps = self.output.unflatten(-1, (self.groups, -1)).to(attended.dtype)
            result = torch.einsum("bhqgi,higo->bgoq", attended, maps)
            result = result.flatten(1, 2).unflatten(-1, sizes).contiguous()
        if lost is not None:
            result = result.masked_fill(lost, math.nan)
        if self.bias is None:
            return result
        return result + self.bias.view(-1, *[1] * self.axes).to(result.dtype)

    def padded(self, inputs: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        """The tokens: the image with its padding."""
        if set(self.upsampling) != {1}:
            spread = [
                (n - 1) * s + 1 for n, s in zip(inputs.shape[2:], self.upsampling, strict=True)
            ]
            upsampled = inputs.new_zeros(*inputs.shape[:2], *spread)
            upsampled[(..., *(slice(None, None, s) for s in self.upsampling))] = inputs
            inputs = upsampled
        widths = self._widths(inputs.shape[2:])
        if output_size is not None:
            reaches = zip(self.dilation, self.kernel_size, strict=True)
            sides = zip(inputs.shape[2:], reaches, widths, output_size[-self.axes :], strict=True)
            widths = tuple(
                (before, outputs + d * (k - 1) - size - before)
                for size, (d, k), (before, _), outputs in sides
            )
        flat = tuple(chain.from_iterable(reversed(widths)))
        if not any(flat):
            return inputs
        mode = "constant" if self.padding_mode == "zeros" else self.padding_mode
        return functional.pad(inputs, flat, mode=mode)

    def _widths(self, sizes: Sequence[int]) -> Widths:
        if isinstance(self.padding, tuple):
            return self.padding
        sides = zip(sizes, self.kernel_size, self.stride, self.dilation, strict=True)
        totals = [max(0, (-(-n // s) - 1) * s + d * (k - 1) + 1 - n) for n, k, s, d in sides]
        return tuple((total // 2, total - total // 2) for total in totals)

    @property
    def _reach(self) -> int:
        """From the first tap of a sequence's kernel to its last, in tokens."""
        return self.dilation[0] * (self.kernel_size[0] - 1)

    def _last(self, sizes: Sequence[int]) -> Tensor:
        """The last key that each query of a sequence reads."""
        return torch.arange(sizes[0], device=self.output.device) * self.stride[0] + self._reach

    def _without_lost(self, tokens: Tensor, sizes: Sequence[int]) -> tuple[Tensor, Tensor | None]:
        """Of a causal layer: zeros for what is not finite, and which outputs see any."""
        if not self.causal:
            return tokens, None
        is_finite = tokens.isfinite().unflatten(1, (self.groups, -1)).all(2)
        lost = (~is_finite).cumsum(-1)[..., self._last(sizes)] > 0
        lost = lost.repeat_interleave(self.out_channels // self.groups, 1)
        return tokens.nan_to_num(0.0, 0.0, 0.0), lost

    def table(self, number_of_keys: int | Tensor) -> Tensor:
        """M(N)·s, `[heads, taps]`: log(1 + N(1/ε - 1)) is log(1 + e^(log N - logit ε)).

        Args:
            number_of_keys: Or that of each query, for `[heads, taps, queries]`.
        """
        dtype = score_dtype(self.scores.dtype)
        counts = number_of_keys
        log = math.log(counts) if isinstance(counts, int) else counts.to(dtype).log()
        logit = log - self.uniform_logit.to(dtype)
        height = torch.logaddexp(logit, torch.zeros_like(logit))
        return height * self.scores.to(dtype)[(..., *(None,) * height.ndim)]

    def group_layer(self) -> Any:
        """The `convattn.AttentionLayer` of one group of channels, to all outputs, without the bias.

        It holds the present parameters, for `convattn.attention_to_conv`, `convattn.save_layer` and
        the rest of that library, and needs JAX. `convattn.plot_heads`, `convattn.attention_maps`,
        `convattn.diagnosis.diagnose` and `to_multihead_attention` take the module itself. Where
        pixels are filled in (S.pad), those behind the last tap of a stride are no tokens there;
        after training they may count in this module.

        Raises:
            ValueError: For a transposed convolution, whose tokens are not the pixels of its image,
                and for paddings that `convattn.conv_to_attention` does not take.

        >>> import convattn as ca, numpy as np
        >>> conv = torch.nn.Conv2d(2, 3, 3, padding=1)
        >>> layer = AttentionConv.from_conv(conv).group_layer()
        >>> kernel, bias, residual = ca.attention_to_conv(layer, 3, image_size=8)
        >>> bool(np.allclose(kernel, conv.weight.detach().permute(2, 3, 1, 0), atol=1e-5))
        True
        """
        if set(self.upsampling) != {1}:
            raise ValueError(
                f"upsampling={self.upsampling}, but expected no transposed convolution: its tokens "
                "lie between the pixels of the image; take .scores and .output instead"
            )
        import numpy as np

        from convattn.constructions.conversion import conv_to_attention
        from convattn.encodings.bias import BiasEncoding
        from convattn.operators.arrays import as_array
        from convattn.operators.padding import centred_padding

        def array(parameter: Tensor, name: str) -> Any:
            tensor = parameter.detach().cpu()
            return as_array(tensor.to(score_dtype(tensor.dtype)).numpy(), name)

        padding: Any = "SAME" if self.padding == SAME_XLA else self.padding
        if self.causal:
            padding = "CAUSAL" if self.padding == ((self._reach, 0),) else None
        elif self.padding_mode != "zeros" and any(map(any, self.padding)):
            centred = centred_padding(self.kernel_size, self.dilation).widths
            padding = _FILLS[self.padding_mode] if self.padding == centred else None
        if padding is None:
            raise ValueError(
                f"padding={self.padding} of {self.padding_mode} with causal={self.causal}, but "
                "expected zeros, as many pixels on each side as keep the size at stride 1, or with "
                "causal=True zeros before the sequence alone; take .scores and .output instead"
            )
        output = array(self.output, "output")
        layer = conv_to_attention(
            np.zeros((*self.kernel_size, *output.shape[1:]), output.dtype),
            stride=self.stride,
            dilation=self.dilation,
            padding=padding,
            causal=self.causal,
        )
        assert isinstance(layer.encoding, BiasEncoding)
        scores, uniform = array(self.scores, "scores"), array(self.uniform_weight, "uniform_weight")
        encoding = replace(layer.encoding, values=scores, uniform_weight=uniform)
        return replace(layer, encoding=encoding, output=output)

    def _softmax_terms(self, number_of_keys: int | Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The exponentials at the taps, that of every other key, and their sum over all keys."""
        table = self.table(number_of_keys)
        most = table.amax(1, keepdim=True).clamp(min=0)
        raised, level = torch.exp(table - most), torch.exp(-most)
        total = raised.sum(1, keepdim=True) + (number_of_keys - table.shape[1]) * level
        return raised, level, total

    def _causal(self, tokens: Tensor, sizes: Sequence[int]) -> Tensor:
        """`[batch, heads, queries, in]`: slices, and the sum of the keys up to each query."""
        last = self._last(sizes)
        raised, level, total = self._softmax_terms(last + 1)
        slices = tokens[..., self._key_indices(tokens.shape[2:], sizes, tokens.device)]
        sums = tokens.cumsum(-1, dtype=raised.dtype)[..., last]
        attended = torch.einsum("htq,biqt->bhqi", (raised - level) / total, slices.to(raised.dtype))
        attended = attended + torch.einsum("hq,biq->bhqi", (level / total)[:, 0], sums)
        return attended.to(tokens.dtype)

    def _shift(self, tokens: Tensor) -> Tensor:
        """Weighted shifts, and the sum of all tokens."""
        keys = math.prod(tokens.shape[2:])
        raised, level, total = self._softmax_terms(keys)
        maps = self.output.to(raised.dtype)
        kernel = torch.einsum("ht,hio->oit", (raised - level) / total, maps)
        # Of the mean, as the sum of an image is beyond float16, which autocast multiplies in.
        everywhere = torch.einsum("h,hio->io", (keys * level / total)[:, 0], maps)
        means = tokens.flatten(2).mean(-1, dtype=raised.dtype).unflatten(1, (self.groups, -1))
        split = everywhere.unflatten(1, (self.groups, -1))
        uniform = torch.einsum("bgi,igo->bgo", means, split).flatten(1)
        shifted = CONVOLUTIONS[self.axes](
            tokens,
            kernel.unflatten(-1, self.kernel_size).to(tokens.dtype),
            stride=self.stride,
            dilation=self.dilation,
            groups=self.groups,
        )
        return shifted + uniform.view(*uniform.shape, *[1] * self.axes).to(shifted.dtype)

    def _dense(self, tokens: Tensor, sizes: Sequence[int]) -> Tensor:
        """`[batch, heads, queries, in]`, all weights formed."""
        keys, values = math.prod(tokens.shape[2:]), tokens.flatten(2)
        table = self.table(self._last(sizes) + 1 if self.causal else keys)
        entries = table.mT if self.causal else table[:, None]
        indices = self._key_indices(tokens.shape[2:], sizes, tokens.device)
        shape = (self.heads, *indices.shape)
        scores = table.new_zeros(self.heads, len(indices), values.shape[-1])
        scores = scores.scatter(2, indices.expand(shape), entries.expand(shape))
        if self.causal:
            later = torch.arange(keys, device=tokens.device) > self._last(sizes)[:, None]
            scores = scores.masked_fill(later, -math.inf)
        weights = torch.softmax(scores, -1).to(values.dtype)
        return torch.einsum("hqk,bik->bhqi", weights, values)

    def _flex(self, tokens: Tensor, sizes: Sequence[int]) -> Tensor:
        """The same by FlexAttention, whose queries and keys are zero."""
        from torch.nn.attention.flex_attention import flex_attention

        width, taps = tokens.shape[-1], self.kernel_size[-1]
        values = tokens.flatten(2).mT[:, None]
        last = self._last(sizes) if self.causal else None
        table = self.table(values.shape[2] if last is None else last + 1).to(values.dtype)
        rows, columns = ([1] * 2 + list(sizes) for sizes in (self.stride, self.dilation))
        reach = (1, *self.kernel_size)[-2:]

        def score(score: Tensor, batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
            down = key // width - rows[-2] * (query // sizes[-1])
            across = key % width - rows[-1] * (query % sizes[-1])
            inside = (down >= 0) & (across >= 0)
            inside = inside & (down % columns[-2] == 0) & (across % columns[-1] == 0)
            first, second = down // columns[-2], across // columns[-1]
            inside = inside & (first < reach[0]) & (second < reach[1])
            tap = torch.where(inside, first * taps + second, 0)
            if last is None:
                return score + torch.where(inside, table[head, tap], 0)
            score = score + torch.where(inside, table[head, tap, query], 0)
            return torch.where(key <= last[query], score, -math.inf)

        zeros = values.new_zeros(len(tokens), 1, values.shape[2], _FLEX_WIDTH)
        queries = values.new_zeros(len(tokens), self.heads, math.prod(sizes), _FLEX_WIDTH)
        return flex_attention(queries, zeros, values, score_mod=score, enable_gqa=True)

    def _key_indices(self, image: Sequence[int], sizes: Sequence[int], device: Any) -> Tensor:
        """Which key each tap of each query is, `[queries, taps]`, both row-major."""
        indices = torch.zeros(1, 1, dtype=torch.long, device=device)
        for axis, size in enumerate(image):
            queries = torch.arange(sizes[axis], device=device) * self.stride[axis]
            taps = torch.arange(self.kernel_size[axis], device=device) * self.dilation[axis]
            here = queries[:, None] + taps
            indices = indices[:, None, :, None] * size + here[None, :, None, :]
            indices = indices.flatten(2).flatten(0, 1)
        return indices

    def _widths_of(self, padding: Any) -> Widths | str:
        if padding == SAME_XLA:
            return SAME_XLA
        pairs = ((0, 0),) * self.axes if padding is None else padding
        try:
            widths = tuple((int(before), int(after)) for before, after in pairs)
        except (TypeError, ValueError):
            widths = ()
        if len(widths) != self.axes:
            raise ValueError(
                f"padding={padding!r}, but expected {self.axes} pairs (before, after), or "
                f"{SAME_XLA!r}; from_conv reads that of a convolution"
            )
        return widths

    def _per_axis(self, value: int | Sequence[int]) -> tuple[int, ...]:
        values = (value,) * self.axes if isinstance(value, int) else tuple(value)
        if len(values) != self.axes or min(values) < 1:
            raise ValueError(f"{value}, but expected {self.axes} positive integers")
        return values

    def __setattr__(self, name: str, value: Any) -> None:
        """Set parameters, `backend`, and what is no option of a convolution.

        Raises:
            AttributeError: For other options once the layer is made, and for a weight.
            ValueError: For a back end that there is not.
        """
        if name == "weight":
            raise AttributeError(_NO_WEIGHT)
        if name in FIXED and hasattr(self, "bias"):
            raise AttributeError(
                f"{name} of an AttentionConv cannot be set, as its heads are made for one; make "
                "the layer anew, or set it on the convolution before that becomes attention"
            )
        if name == "backend" and value not in BACK_ENDS:
            raise ValueError(f"backend={value!r}, but expected one of {', '.join(BACK_ENDS)}")
        super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        if name == "weight":
            return _NoWeight(self.output.device, self.output.dtype)
        return super().__getattr__(name)

    def extra_repr(self) -> str:
        """What `print` shows."""
        fields = [f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}"]
        fields += [f"heads={self.heads}", f"stride={self.stride}", f"padding={self.padding}"]
        fields += [f"dilation={self.dilation}"] if set(self.dilation) != {1} else []
        fields += [f"groups={self.groups}"] if self.groups > 1 else []
        return ", ".join([*fields, f"backend={self.backend!r}"])


class _NoWeight:
    """What models read of a weight to place other tensors; the weight itself is not there."""

    def __init__(self, device: torch.device, dtype: torch.dtype) -> None:
        self.device, self.dtype = device, dtype

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(_NO_WEIGHT)

    @classmethod
    def __torch_function__(cls, *_: Any, **__: Any) -> Any:
        raise AttributeError(_NO_WEIGHT)


def score_dtype(dtype: torch.dtype) -> torch.dtype:
    """At least float32."""
    return torch.promote_types(dtype, torch.float32)


def _widths_now(conv: Any) -> Widths:
    """What a convolution lays (before, after) on each axis; its options may have been set later.

    PyTorch reads the widths that it has kept from the beginning only where it does not lay zeros.
    """
    axes = conv.weight.ndim - 2
    if conv.padding_mode != "zeros":
        reversed_widths = conv._reversed_padding_repeated_twice[::-1]  # after, before, by axis
        return tuple(zip(reversed_widths[1::2], reversed_widths[::2], strict=True))
    if conv.padding == "same":
        reach = [d * (k - 1) for d, k in zip(conv.dilation, conv.weight.shape[2:], strict=True)]
        return tuple((total // 2, total - total // 2) for total in reach)
    widths = 0 if conv.padding == "valid" else conv.padding
    per_axis = (widths,) * axes if isinstance(widths, int) else tuple(widths)
    return tuple((width, width) for width in per_axis)
