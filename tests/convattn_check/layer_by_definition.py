"""A certificate's layer and the convolution, evaluated pixel by pixel with fractions.

Nothing is shared with the checker: attention rows are normalised weights (or the keys of largest
score), value maps are tables that the certificate's pattern fills from the kernel.
"""

from fractions import Fraction
from itertools import product
from math import cos, pi

# Images and kernels are dictionaries: {pixel: [channel]}, {(tap index, ...): [in][out]}.


def grid(sides):
    return list(product(*(range(side) for side in sides)))


def convolution(body, image, sides, kernel, channels):
    """Every output pixel of the zero-padded convolution, and then those that the stride keeps."""
    inputs, outputs = channels
    result = {}
    for x in grid(sides):
        if any(p % s for p, s in zip(x, body["stride"], strict=True)):
            continue
        total = [Fraction(0)] * outputs
        for index, matrix in kernel.items():
            read = tuple(
                p + (i - (k - 1) // 2) * d
                for p, i, k, d in zip(x, index, body["kernel_size"], body["dilation"], strict=True)
            )
            pixel = image.get(read)
            for i, j in product(range(inputs), range(outputs)):
                total[j] += pixel[i] * matrix[i][j] if pixel else 0
        result[x] = total
    return result


def scores(attention, head, offsets, query, key):
    """The score of a limit head, up to its factor α or M."""
    shift = [k - q for k, q in zip(key, query, strict=True)]
    target = attention["targets"][head]
    match attention["score"]:
        case "quadratic":
            return -sum((s - t) ** 2 for s, t in zip(shift, target, strict=True))
        case "enumerated":
            codes, spare = attention["codes"], attention["spare"]
            code = codes[offsets.index(shift)] if shift in offsets else spare
            return -((code - codes[offsets.index(target)]) ** 2)
        case "polygon":
            if shift not in offsets:
                return 0
            codes, corners = attention["codes"], attention["corners"]
            turn = (codes[offsets.index(shift)] - codes[offsets.index(target)]) % corners
            return cos(2 * pi * turn / corners)
        case "absolute":
            left, right = ([*p, sum(c * c for c in p), 1] for p in (query, key))
            form = attention["forms"][head]
            size = range(len(left))
            return sum(left[a] * form[a][b] * right[b] for a in size for b in size)
        case _:  # "bias", "given"
            return int(shift == target)


def weights(attention, head, offsets, query, keys):
    """Positive (or, in the limit, nonnegative) weights of the keys, not yet normalised."""
    shifts = [[k - q for k, q in zip(key, query, strict=True)] for key in keys]
    if attention["family"] == "one_hot_limit":
        values = [scores(attention, head, offsets, query, key) for key in keys]
        return [Fraction(score == max(values)) for score in values]
    if attention["family"] == "leaky_one_hot":
        height = 1 + len(keys) * (1 / Fraction(attention["leak"]) - 1)  # e^bias
        return [height if s == attention["targets"][head] else Fraction(1) for s in shifts]
    bases, exponent = attention["bases"], attention["exponents"][head]
    return [
        Fraction(bases[offsets.index(s)]) ** exponent if s in offsets else Fraction(1)
        for s in shifts
    ]


def normaliser(attention, head, keys):
    """What the value map is scaled by: a number for the whole layer, not for each query."""
    if attention["family"] != "scalar_power":
        return 1
    exponent = attention["exponents"][head]
    return keys + sum(Fraction(base) ** exponent - 1 for base in attention["bases"])


def coefficients(body):
    """V[head][offset]; for "lagrange" by long division, low degree first."""
    values, offsets = body["values"], len(body["offsets"])
    table = [[Fraction(0)] * offsets for _ in range(body["heads"])]
    if values["family"] == "sparse":
        for head, offset, value in values["entries"]:
            table[head][offset] = Fraction(value)
        return table
    for offset, base in enumerate(body["attention"]["bases"]):
        rest = list(values["master"])
        for degree in range(len(rest) - 2, -1, -1):
            table[degree][offset] = Fraction(rest[degree + 1], values["denominators"][offset])
            rest[degree] += rest[degree + 1] * int(base)
    return table


def layer(body, image, sides, kernel, channels):
    """The multi-head attention layer on the ringed grid of tokens, read off as pixels."""
    inputs, outputs = channels
    attention, offsets, patch, pattern = (
        body[name] for name in ("attention", "offsets", "patch_size", "pattern")
    )
    table = coefficients(body)
    tokens = [side // p for side, p in zip(sides, patch, strict=True)]
    keys = list(
        product(
            *(range(-low, n + high) for n, (low, high) in zip(tokens, body["ring"], strict=True))
        )
    )
    inside = grid(patch)
    axes = range(len(patch))
    per_axis = [sorted({offset[axis] for offset in offsets}) for axis in axes]
    direct = body["stride_route"] == "tokens"
    places = grid([len(pattern[axis][0]) for axis in axes])
    step = body["stride"] if direct else [1] * len(patch)

    def pixel_of(token, place):
        return tuple(n * p + c for n, p, c in zip(token, patch, place, strict=True))

    def tap(offset, output, place):
        indices = tuple(
            pattern[axis][per_axis[axis].index(offset[axis])][output[axis]][place[axis]]
            for axis in axes
        )
        return None if -1 in indices else kernel[indices]

    zero = [0] * inputs
    patches = {key: [image.get(pixel_of(key, place), zero) for place in inside] for key in keys}
    result = {}
    for query in grid(tokens):
        total = {output: [Fraction(0)] * outputs for output in places}
        for head in range(body["heads"]):
            row = weights(attention, head, offsets, query, keys)
            mean = [
                [
                    sum(w * patches[key][place][i] for w, key in zip(row, keys, strict=True))
                    / sum(row)
                    for i in range(inputs)
                ]
                for place in range(len(inside))
            ]
            scale = normaliser(attention, head, len(keys))
            for number, offset in enumerate(offsets):
                coefficient = table[head][number] * scale
                if coefficient == 0:
                    continue
                for output, (n, place) in product(places, enumerate(inside)):
                    matrix = tap(offset, output, place)
                    for i, j in product(range(inputs), range(outputs)) if matrix else ():
                        total[output][j] += coefficient * mean[n][i] * matrix[i][j]
        for output, value in total.items():
            place = [o * s for o, s in zip(output, step, strict=True)]
            x = pixel_of(query, place)
            if direct or all(p % s == 0 for p, s in zip(x, body["stride"], strict=True)):
                result[x] = value
    return result
