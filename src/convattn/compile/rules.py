"""Which rule reads which operation of JAX."""

from convattn.compile import contractions, elementwise, moves, windows
from convattn.compile.reader import Rule

MOVES = (
    *("reshape", "squeeze", "expand_dims", "broadcast_in_dim", "transpose", "slice", "rev"),
    *("gather", "dynamic_slice", "split", "unstack"),
)
_FUNCTIONS = (
    *("erf", "erfc", "erf_inv", "tanh", "logistic", "exp", "exp2", "expm1", "log", "log1p", "sqrt"),
    *("rsqrt", "cbrt", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "asinh"),
    *("acosh", "atanh", "integer_pow", "pow", "square", "floor", "ceil", "round", "sign"),
)
_ELEMENTWISE: dict[str, Rule] = {
    "add": elementwise.added(1),
    "add_any": elementwise.added(1),
    "sub": elementwise.added(-1),
    "mul": elementwise.times,
    "div": elementwise.quotient,
    "neg": elementwise.negative,
    "max": elementwise.larger(1),
    "min": elementwise.larger(-1),
    "clamp": elementwise.clamp,
    "gt": elementwise.compared(1, negated=False),
    "lt": elementwise.compared(-1, negated=False),
    "ge": elementwise.compared(-1, negated=True),
    "le": elementwise.compared(1, negated=True),
    "not": elementwise.opposite,
    "select_n": elementwise.select,
    "abs": elementwise.magnitude,
    **dict.fromkeys(_FUNCTIONS, elementwise.smooth),
}
RULES: dict[str, Rule] = {
    **{name: elementwise.broadcasting(rule) for name, rule in _ELEMENTWISE.items()},
    **dict.fromkeys(MOVES, moves.moved),
    **dict.fromkeys(("concatenate", "stack"), moves.joined),
    "pad": moves.padded,
    "convert_element_type": moves.cast,
    "reduce_precision": moves.cast,
    **dict.fromkeys(("copy", "stop_gradient", "optimization_barrier"), moves.kept),
    "conv_general_dilated": windows.convolution,
    "reduce_window_sum": windows.window_sum,
    "reduce_window_max": windows.window_max,
    "reduce_max": windows.largest_of_all,
    "reduce_sum": contractions.total,
    "dot_general": contractions.product,
}
