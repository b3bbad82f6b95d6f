"""A property of a pair: a box of images, and what a counterexample's logits are."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from importlib import import_module
from importlib.util import find_spec
from itertools import zip_longest

import numpy as np

from verifier_twins.exact import Certified, Form, Rows, add_multiple, logits


@dataclass(frozen=True)
class Condition:
    """A counterexample's logits have `smaller` ≤ `larger`.

    Attributes:
        smaller: A class.
        larger: A class, or a threshold.
    """

    smaller: int
    larger: int | Fraction

    def value(self, outputs: Sequence[Fraction]) -> Fraction:
        """How far from being one logits are: positive where the condition is not met."""
        other = outputs[self.larger] if isinstance(self.larger, int) else self.larger
        return outputs[self.smaller] - other

    def form(self) -> tuple[Form, Fraction]:
        """The same as a form of the logits and a constant."""
        if isinstance(self.larger, int):
            return {self.smaller: Fraction(1), self.larger: Fraction(-1)}, Fraction(0)
        return {self.smaller: Fraction(1)}, -self.larger

    def room(self, bounds: np.ndarray) -> float:
        """How far the value is off at most, where each logit is by its bound."""
        return float(sum(bounds[place] for place in self.form()[0]))


def conditions(asks: str, classes: int) -> tuple[Condition, ...]:
    """Of a property: any of them makes a counterexample."""
    if asks == "threshold":
        return (Condition(0, Fraction(0)),)
    return tuple(Condition(0, other) for other in range(1, classes))


def composed(rows: Rows, condition: Condition) -> tuple[Form, Fraction]:
    """A condition's value as a form of what the classifier reads."""
    form, shift = condition.form()
    composition: Form = {}
    for output, weight in form.items():
        shift += weight * rows.shifts[output]
        add_multiple(composition, weight, rows.forms[output])
    return composition, shift


def certified_least(
    certified: Certified, layers: Sequence[Rows], asked: Sequence[Condition]
) -> Fraction:
    """A lower bound of all conditions' values on the box."""
    number = len(layers) - 1
    forms = (composed(layers[-1], condition) for condition in asked)
    return min(certified.least(form, number)[0] + shift for form, shift in forms)


def least_found(
    certified: Certified, layers: Sequence[Rows], asked: Sequence[Condition], starts: int = 4
) -> tuple[Fraction, list[Fraction]]:
    """The smallest value of a condition at corners of the box, and the corner.

    From a corner to the one to which the gradient there points, until no value falls.
    """
    lower, upper, number = certified.lower, certified.upper, len(layers) - 1
    rng = np.random.default_rng(0)
    best: tuple[Fraction, list[Fraction]] | None = None
    for condition in asked:
        form, _ = composed(layers[-1], condition)
        corners = [certified.least(form, number)[1]]
        corners += [(rng.random(len(lower)) < 0.5).tolist() for _ in range(starts - 1)]
        for at_upper in corners:
            last: Fraction | None = None
            while True:
                image = [ends[up] for *ends, up in zip(lower, upper, at_upper, strict=True)]
                value = condition.value(logits(layers, image))
                if last is not None and value >= last:
                    break
                last = value
                if best is None or value < best[0]:
                    best = value, image
                gradient = _gradient(layers, image, form)
                at_upper = [gradient.get(place, 0) < 0 for place in range(len(lower))]
    assert best is not None
    return best


def _gradient(layers: Sequence[Rows], image: Sequence[Fraction], form: Form) -> Form:
    """Of a form of what the classifier reads, by the pixels."""
    numbers, active = list(image), []
    for rows in layers[:-1]:
        before = rows.at(numbers)
        active.append([number > 0 for number in before])
        numbers = [max(number, Fraction(0)) for number in before]
    for rows, on in zip(reversed(layers[:-1]), reversed(active), strict=True):
        earlier: Form = {}
        for place, weight in form.items():
            if on[place]:
                add_multiple(earlier, weight, rows.forms[place])
        form = earlier
    return form


def vnnlib(
    lower: np.ndarray, upper: np.ndarray, classes: int, asked: Sequence[Condition]
) -> tuple[str, str]:
    """The property in VNN-LIB 1.0 and 2.0; images `[channels, rows, columns]`, row by row."""
    places = list(np.ndindex(1, *lower.shape))
    old = {place: f"X_{number}" for number, place in enumerate(places)}
    new = {place: f"X[{','.join(map(str, place))}]" for place in places}
    outputs = [f"Y_{number}" for number in range(classes)], [f"Y[0,{n}]" for n in range(classes)]
    declared = [
        "".join(f"(declare-const {name} Real)\n" for name in [*old.values(), *outputs[0]]),
        "(vnnlib-version <2.0>)\n(declare-network N\n"
        f"  (declare-input X float32 {_shape((1, *lower.shape))})\n"
        f"  (declare-output Y float32 {_shape((1, classes))})\n)\n",
    ]
    texts = []
    for head, names, logits_names in zip(declared, (old, new), outputs, strict=True):
        lines = [
            f"(assert ({sign} {names[place]} {decimal(float(bound[place[1:]]))}))\n"
            for place in places
            for sign, bound in ((">=", lower), ("<=", upper))
        ]
        texts.append(head + "".join(lines) + _output(asked, logits_names))
    return texts[0], texts[1]


def require_parsed(text: str) -> None:
    """Refuse a text of VNN-LIB 2.0 whose assertions PyPI's `vnnlib` reads otherwise.

    Where that package is not installed, nothing is refused.

    Raises:
        ValueError: Says what was read, or why it cannot be.
    """
    if find_spec("vnnlib") is None:
        return
    parser = import_module("vnnlib")
    try:
        query = parser.parse_query_string(text)
    except parser.VNNLibException as error:
        raise ValueError(f"the package vnnlib cannot read a property: {error}") from error
    assertions = ["".join(f"(assert{each.expr})".split()) for each in query.assertions]
    lines = ["".join(line.split()) for line in text.splitlines() if line.startswith("(assert")]
    if assertions != lines:
        differing = next(pair for pair in zip_longest(assertions, lines) if len({*pair}) == 2)
        raise ValueError(f"the package vnnlib reads {differing[0]}, but expected {differing[1]}")


def _shape(sides: Sequence[int]) -> str:
    return f"[{','.join(map(str, sides))}]"


def _output(asked: Sequence[Condition], names: Sequence[str]) -> str:
    parts = []
    for condition in asked:
        other = condition.larger
        larger = names[other] if isinstance(other, int) else decimal(other)
        parts.append(f"(<= {names[condition.smaller]} {larger})")
    return f"(assert (or {' '.join(f'(and {part})' for part in parts)}))\n"


def decimal(number: float | Fraction) -> str:
    """A dyadic number, exactly.

    >>> decimal(0.1875), decimal(Fraction(-3, 2)), decimal(2)
    ('0.1875', '-1.5', '2.0')
    """
    text = format(Decimal(float(number)), "f")
    return text if "." in text else f"{text}.0"
