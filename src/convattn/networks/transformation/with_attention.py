"""`with_attention`: a function, its convolutions computed as attention."""

import sys
from collections.abc import Callable
from functools import wraps
from typing import Any, SupportsIndex

import jax
from jax import Array

from convattn.constructions.options import UNIFORM_WEIGHT
from convattn.networks.transformation.attention import ConversionOptions
from convattn.networks.transformation.contents import holds_convolution
from convattn.networks.transformation.convolution import Convolution
from convattn.networks.transformation.evaluation import Evaluation, Scope
from convattn.networks.transformation.report import NUMBERS


def with_attention(
    function: Callable[..., Any],
    *,
    where: Callable[[Convolution], Any] | None = None,
    form: str | None = None,
    uniform_weight: float | Array = UNIFORM_WEIGHT,
    sharpness: float | Array | None = None,
    num_heads: str | None = None,
    head_dim: SupportsIndex | None = None,
    pointwise: str = "attention",
    backend: str = "auto",
    strict: bool = False,
    border: str = "zeros",
) -> Callable[..., Any]:
    """A function with the same arguments and outputs, its convolutions computed as attention.

    The function is traced, as `jax.grad` does, and every `lax.conv_general_dilated` in it becomes
    multi-head attention on the tokens of its image. It makes no difference from which framework the
    function is, and whether kernels are parameters or computed. Compiled parts, loops, branches,
    checkpoints and functions with derivatives of their own are looked into at any depth. It can be
    compiled, differentiated, batched and exported as the function itself.

    Args:
        function: Takes and gives pytrees of arrays; other arguments stay as they are.
        where: Takes a `Convolution` (its name, shapes and parameters) and says whether it is to be
            attention; None takes all.
        form: `"exact"` at finite scores, with one head for each tap and one that is uniform, or
            `"limit"`, whose attention is one-hot; None is exact.
        uniform_weight: ε in (0, 1), the weight that each head of the exact form lays on all tokens
            alike.
        sharpness: By how much the score of a tap is ahead of the others in the limit form; None
            makes attention one-hot in the dtype of the scores.
        num_heads: `"min"` takes ρ + 1 heads, ρ the rank of the kernel's taps, for kernels that are
            known when the function is traced. None takes one for each tap.
        head_dim: The width of every head; None gives each the width it needs.
        pointwise: `"attention"` makes two heads of a 1 × 1 convolution, `"keep"` leaves it the
            linear map of each token that it is.
        backend: Which algorithm computes attention, as in `apply_attention`. The heads of the exact
            form are tied to one kernel: what the uniform weight adds in some, the uniform head
            takes back (S.finite). `"auto"` and `"shift"` leave out both, and what remains of the
            sum of all heads is one convolution, at its cost. `"dense"` and `"chunked"` compute
            every head; so do all with `head_dim` or `num_heads`, and in the limit form.
        strict: Whether a convolution that is not converted is an error, but for those that `where`
            and `pointwise` leave. What cannot be seen into, such as a callback, is none; the report
            of `attention_of` names it.
        border: As for `conv_to_attention`: `"register"` refuses convolutions with another padding
            than zeros as far as the kernel reaches; leave these out with `where`.

    Returns:
        The function. Convolutions of three axes, of integers, of complex numbers, of eight bits and
        of explicit shardings stay as they are, unless `strict`.

    Raises:
        ValueError: For options that do not exist or do not go together; when the function is
            called, if it cannot be traced, as `conv_to_attention` for a kernel, and with `strict`.

    Source: S.finite, S.pad, S.network of this project's ledger.

    >>> import jax.numpy as jnp
    >>> def blur(image):
    ...     return jax.scipy.signal.convolve(image, jnp.ones((3, 3)) / 9, mode="same")
    >>> image = jnp.arange(12.0).reshape(3, 4)
    >>> bool(abs(with_attention(blur)(image) - blur(image)).max() < 1e-5)
    True
    >>> slope = jax.grad(lambda image: with_attention(blur)(image).sum())(image)
    >>> slope.round(4)[1, 1].item()
    1.0
    """
    require_function(function)
    options = ConversionOptions(
        where,
        form,
        uniform_weight,
        sharpness,
        num_heads,
        head_dim,
        pointwise,
        backend,
        strict,
        border,
    )

    evaluation = Attending(options)

    @wraps(function)
    def attended(*args: Any, **kwargs: Any) -> Any:
        return evaluated(function, evaluation, args, kwargs)

    return attended


class Attending(Evaluation):
    """Attention in place of convolutions, its layers made from their kernels.

    Attributes:
        options: Its form.
        ties: Whether uniform heads are tied to the others, where the form has them.
    """

    def __init__(self, options: ConversionOptions, ties: bool = True) -> None:
        self.options, self.ties = options, ties

    def convolve(self, scope: Scope, equation: Any, images: Any, kernel: Any) -> Any:
        """The result of a convolution, as attention where the options say so."""
        convolution = Convolution.of(equation, scope.name)
        reason = self.options.reason_to_keep(convolution)
        if reason is None:
            make_layer = self.options.tied_layer if self.ties else self.options.layer
            layer = make_layer(convolution, convolution.kernel(kernel))
            return self.options.outputs(convolution, layer, images)
        if reason == convolution.reason:
            self.require_converted(str(convolution), reason)
        return self.bind(equation, (images, kernel))[0]

    def unreached(self, scope: Scope, equation: Any) -> None:
        """Refuse it under `strict`."""
        name = scope.inside(equation).name
        if holds_convolution(equation, scope.name):
            self.require_converted(name or "unnamed", f"inside {equation.primitive.name}")

    def require_converted(self, name: str, reason: str) -> None:
        """Refuse a convolution that is not converted, under `strict`."""
        if self.options.strict:
            raise ValueError(
                f"strict=True, but the convolution {name} is not converted: {reason}; leave it out "
                "with where=, or leave out strict"
            )


def evaluated(
    function: Callable[..., Any],
    evaluation: Evaluation,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """What a function gives, its equations evaluated in a way of one's own."""
    traced = Traced.of(function, args, kwargs)
    return traced.output(evaluation.closed(traced.jaxpr, traced.arrays, Scope()))


class Traced:
    """A function as a jaxpr of the arrays among its arguments.

    Attributes:
        jaxpr: Closed.
        arrays: Those of the arguments.
    """

    def __init__(self, jaxpr: Any, arrays: list[Any], structure: Any) -> None:
        self.jaxpr, self.arrays, self._structure = jaxpr, arrays, structure

    @classmethod
    def of(
        cls, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> "Traced":
        """Trace a function."""
        leaves, tree = jax.tree.flatten((args, kwargs))
        name = getattr(function, "__name__", type(function).__name__)
        indices = [index for index, leaf in enumerate(leaves) if is_array(leaf)]

        def of_arrays(*arrays: Any) -> Any:
            merged = list(leaves)
            for index, array in zip(indices, arrays, strict=True):
                merged[index] = array
            own_args, own_kwargs = jax.tree.unflatten(tree, merged)
            outputs = function(*own_args, **own_kwargs)
            for leaf in jax.tree.leaves(outputs):
                if not is_array(leaf) and not isinstance(leaf, NUMBERS):
                    raise ValueError(
                        f"function={name} gives {leaf!r}, but expected arrays, numbers and "
                        "containers of them; return only these"
                    )
            return outputs

        arrays = [leaves[index] for index in indices]
        try:
            jaxpr, shapes = jax.make_jaxpr(of_arrays, return_shape=True)(*arrays)
        except (jax.errors.JAXTypeError, jax.errors.JAXIndexError) as error:
            first = str(error).strip().splitlines()[0]
            raise ValueError(
                f"function={name} cannot be traced: {first} It needs the value of an array; use "
                "lax.cond, lax.while_loop or jnp.where, or give that argument as a number of "
                "Python, which is not traced"
            ) from error
        return cls(jaxpr, arrays, jax.tree.structure(shapes))

    def output(self, values: list[Any]) -> Any:
        """The output of the function from those of the jaxpr."""
        return jax.tree.unflatten(self._structure, values)


def is_array(leaf: Any) -> bool:
    """Whether an argument is an array; numbers of Python and dtypes are not, and not traced."""
    described = isinstance(leaf, type | jax.ShapeDtypeStruct)  # np.float32 has a shape, too
    return hasattr(leaf, "shape") and hasattr(leaf, "dtype") and not described


def require_function(function: Any) -> None:
    """Refuse what is no function of JAX arrays."""
    torch: Any = sys.modules.get("torch")
    if torch is not None and isinstance(function, torch.nn.Module):
        raise ValueError(
            f"function={type(function).__name__}, a module of PyTorch, but expected a function of "
            "JAX; pass convattn.torch.function_of(module), or take convattn.torch.to_attention, "
            "which stays in PyTorch"
        )
    if not callable(function):
        raise ValueError(f"function={function!r}, but expected a function of arrays")
