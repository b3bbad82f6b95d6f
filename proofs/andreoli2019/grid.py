"""Grid convolutions: the shifts of a right cuboid are the kernels of convolutional networks.

Claimed. The convolutions of CNNs are exactly the grid convolutions over a cuboid of shifts with
strides and offsets, and pooling and dilated convolutions are covered too.
True. They are, zero-padded and on any number of axes, but what is called a stride is a dilation;
strided convolutions keep only some of the outputs, and average pooling is covered as printed.

Printed. Section 2.1: the grid convolutions of CNNs "are exactly obtained by choosing Δ to be a
regular right cuboid with possibly different strides δ_i and offsets ε_i in the different grid
dimensions", Δ_ki = ε_i + (ω⁻¹k)_i δ_i (eq. 6); Θ is the flattened kernel. Variants that do not
preserve the grid "can also be captured"; "this includes average pooling and dilated convolutions,
where the output grid is a sub-sample of the input one (N is a divisor of M rather than M = N)".

Verified. On a grid of any number of axes, for all K_i ≥ 1, δ_i ≠ 0 and ε_i, the grid convolution
with the shifts of eq. 6 is the zero-padded convolution of dilation |δ_i| whose taps, in this
library's sign key - query, are -Δ: from -(ε + δ) in steps of -δ. The kernel is Θ unflattened, with
the taps of an axis reversed where δ > 0. Kept at every s-th node it is the convolution of stride s,
with M ≠ N. Average pooling over windows of w nodes is a convolution of size 1, or of size |w| with
Θ_k = I/|w|, for any window, stride and dilation that fit.

Repair. (1) δ_i is a dilation, not a stride: M = N, and neighbouring outputs read neighbouring
windows. (2) It is stride, not dilation, that sub-samples the output grid. (3) The index ω⁻¹k starts
at 1, so the cuboid starts at ε + δ, not at ε: taps centred around the node take ε = -δ(K + 1)/2.
(4) As y reads x(s - Δ), the familiar kernel of deep learning, which reads x(s + t), has t = -Δ:
δ < 0, or a kernel turned around. (5) N need not divide M: five nodes at stride 2 leave three, and
overlapping windows of 3 on seven nodes at stride 2 leave three.

Errata.
- eq. 6 | strides δ_i | dilations, as M = N; taps from ε + δ
- Section 2.1 | "dilated" with N a divisor of M | strided; N = ⌈n/s⌉ on each axis

Proof. *The idea:* y reads x at n - Δ, so that Δ is minus a tap.

(A_dᵀ x)_n = Σ_m [n - m = d] x_m = x_(n-d), and zero where n - d is no node, which is zero padding.
So y_n = Σ_k x_(n-Δ_k) Θ_k, the convolution with the tap t_k = -Δ_k at Θ_k.

On an axis t = -ε - jδ, j = 1, …, K: an arithmetic progression of step -δ; hence dilation |δ|,
ascending iff δ < 0.

The basis is the product over the axes, the last index fastest, as row-major flattening is.

Dropping the columns of outputs that are not kept leaves [s·n - m = Δ_k].

The mean over a window is Σ_m A_mn x_m with A_mn = 1/|w| for m in the window of n, one matrix and
Θ = I; writing the window as shifts distributes the factor. ∎
"""

from itertools import product

import jax
import numpy as np
from jax import lax

from convattn_ledger import Claim, Evidence, EvidenceFailed, Kind, Level, Run, Verdict, require
from convattn_ledger.evidence import certified_identities, exact_convolution, proved
from convattn_ledger.structures import (
    cuboid_shifts,
    kernel_to_structure,
    pooling_basis,
    shift_basis,
    structure_to_kernel,
    structured_convolution,
    window_basis,
)
from convattn_ledger.structures.shift_matrices import shift_matrix

# Grid, cuboid, δ, ε; with axes of different sizes.
CUBOIDS = (
    ((9,), (3,), (2,), (-4,)),
    ((8,), (4,), (-1,), (3,)),
    ((7, 6), (3, 2), (-1, 2), (2, -4)),
    ((5, 4, 6), (2, 3, 1), (1, -2, 3), (-1, 4, -3)),
)
# Grid, kernel, stride, dilation.
STRIDES = (((5,), (3,), 2, 1), ((7, 5, 3), (3, 1, 2), 2, 2))
# Grid, window, stride, dilation.
WINDOWS = (((7,), (3,), (2,), (1,)), ((8, 6), (2, 4), (3, 1), (2, 1)))


def draw(run: Run, *shape: int) -> np.ndarray:
    """Integers so small that float64 sums them exactly."""
    return run.rng(*shape).integers(-9, 10, shape)


def xla_convolution(images: np.ndarray, kernel: np.ndarray, stride, dilation, pads) -> np.ndarray:
    """`lax.conv_general_dilated` on one to three axes with explicit padding, exact here."""
    letters = "DHW"[-len(pads) :]
    numbers = (f"N{letters}C", f"{letters}IO", f"N{letters}C")
    return np.asarray(
        lax.conv_general_dilated(
            images.astype(float),
            kernel.astype(float),
            stride,
            pads,
            rhs_dilation=dilation,
            dimension_numbers=numbers,
            precision=lax.Precision.HIGHEST,
        )
    )


def structured(images: np.ndarray, basis, theta: np.ndarray, sides=None) -> np.ndarray:
    """The library's convolution of flattened images, unflattened to the grid of the outputs."""
    flat = images.reshape(len(images), -1, images.shape[-1])
    jitted = jax.jit(structured_convolution, static_argnames="order")
    result = jitted(flat, basis, theta, order="basis_first")
    return np.asarray(result).reshape(len(images), *(sides or images.shape[1:-1]), -1)


def require_equal(actual: np.ndarray, expected: np.ndarray, what: str) -> None:
    """Equal to the last bit, and not all zero."""
    if actual.shape != expected.shape or (actual != expected).any() or not expected.any():
        raise EvidenceFailed(
            f"{what}: shapes {actual.shape} and {expected.shape}"
            + (
                f", {int((actual != expected).sum())} entries differ"
                if actual.shape == expected.shape
                else ""
            )
        )


def cuboids_are_kernels(run: Run) -> str:
    """Eq. 6 against XLA: taps from -(ε + δ) in steps of -δ, on one, two and three axes."""
    for grid, sizes, steps, offsets in CUBOIDS:
        images = draw(run, 2, *grid, 2)
        kernel = draw(run, *sizes, 2, 3)
        basis = shift_basis(grid, cuboid_shifts(sizes, steps, offsets))
        actual = structured(images, basis, kernel.reshape(-1, 2, 3))
        reversed_axes = [axis for axis, step in enumerate(steps) if step > 0]
        taps = [
            sorted(-(e + j * d) for j in range(1, k + 1))
            for k, d, e in zip(sizes, steps, offsets, strict=True)
        ]
        pads = [(-t[0], t[-1]) for t in taps]
        dilation = [abs(step) for step in steps]
        turned = np.flip(kernel, reversed_axes)
        expected = xla_convolution(images, turned, [1] * len(grid), dilation, pads)
        require_equal(actual, expected, f"grid {grid}, K = {sizes}, δ = {steps}, ε = {offsets}")
    return f"{len(CUBOIDS)} cuboids on one to three axes equal XLA's convolution"


def centred_taps(run: Run) -> str:
    """ε = -δ(K + 1)/2 centres an odd kernel; ε = -δ(K - 1)/2, counting from 0, does not."""
    images = draw(run, 2, 9, 2)
    for size, step in ((3, 2), (5, -1)):
        kernel = draw(run, size, 2, 3)
        turned = kernel[::-1] if step > 0 else kernel
        expected = exact_convolution(images, turned, dilation=abs(step))
        basis = shift_basis(9, cuboid_shifts(size, step, -step * (size + 1) // 2))
        require_equal(structured(images, basis, kernel), expected, f"K = {size}, δ = {step}")
        basis = shift_basis(9, cuboid_shifts(size, step, -step * (size - 1) // 2))
        if (structured(images, basis, kernel) == expected).all():
            raise EvidenceFailed(f"K = {size}, δ = {step}: the index may start at 0 after all")
    return "K = 3, δ = 2 and K = 5, δ = -1: the cuboid starts at ε + δ; from ε it is off by a step"


def shifts_are_matrices(run: Run) -> str:
    """Σ_k A_Δkᵀ x Θ_k with the matrices of Definition 1 written out, in integers."""
    for grid, sizes, steps, offsets in CUBOIDS:
        shifts = cuboid_shifts(sizes, steps, offsets)
        matrices = [shift_matrix(grid, shift) for shift in shifts]
        images, theta = draw(run, 2, *grid, 2), draw(run, len(shifts), 2, 3)
        flat = images.reshape(2, -1, 2)
        expected = sum(a.T @ flat @ w for a, w in zip(matrices, theta, strict=True))
        actual = structured(images, shift_basis(grid, shifts), theta)
        require_equal(actual.reshape(expected.shape), expected, f"grid {grid}, shifts {shifts}")
    return f"{len(CUBOIDS)} bases of slices equal their matrices"


def steps_are_dilations(run: Run) -> str:
    """The paper's "strides" leave one output for each input, and are `rhs_dilation`."""
    images, kernel = draw(run, 2, 8, 6, 2), draw(run, 3, 3, 2, 3)
    basis, theta = kernel_to_structure(kernel, (8, 6), dilation=2)
    require(basis.outputs == basis.inputs, f"{basis.outputs} outputs for {basis.inputs} inputs")
    dilated = structured(images, basis, theta)
    pads = [(2, 2)] * 2
    require_equal(dilated, xla_convolution(images, kernel, (1, 1), (2, 2), pads), "dilation 2")
    strided = xla_convolution(images, kernel, (2, 2), (1, 1), [(1, 1)] * 2)
    if strided[0].size == dilated[0].size:
        raise EvidenceFailed(f"stride 2 leaves {strided.shape}, dilation 2 {dilated.shape}")
    return (
        f"δ = 2 is dilation 2, {dilated.shape[1:3]} outputs; stride 2 leaves {strided.shape[1:3]}"
    )


def strides_leave_the_grid(run: Run) -> str:
    """Outputs at 0, s, 2s, …: XLA's strided convolution; N = ⌈n/s⌉ need not divide M."""
    ratios = []
    for grid, sizes, stride, dilation in STRIDES:
        images, kernel = draw(run, 2, *grid, 2), draw(run, *sizes, 2, 3)
        basis, theta = kernel_to_structure(kernel, grid, stride=stride, dilation=dilation)
        pads = [(dilation * (k - 1) // 2, -(-dilation * (k - 1) // 2)) for k in sizes]
        every = [stride] * len(grid)
        spread = [dilation] * len(grid)
        expected = xla_convolution(images, kernel, every, spread, pads)
        actual = structured(images, basis, theta, expected.shape[1:-1])
        require_equal(actual, expected, f"grid {grid}, stride {stride}")
        ratios.append((basis.inputs, basis.outputs))
    if all(inputs % outputs == 0 for inputs, outputs in ratios):
        raise EvidenceFailed(f"in all of (M, N) = {ratios} N divides M")
    return f"equal for (M, N) = {ratios}"


def pooling_is_linear(run: Run) -> str:
    """Sums by `lax.reduce_window` against both forms."""
    for grid, window, stride, dilation in WINDOWS:
        images, count = draw(run, 2, *grid, 2), int(np.prod(window))
        sums = np.asarray(
            lax.reduce_window(
                images.astype(float),
                0.0,
                lax.add,
                (1, *window, 1),
                (1, *stride, 1),
                [(0, 0)] * images.ndim,
                window_dilation=(1, *dilation, 1),
            )
        )
        shifts = window_basis(grid, window, stride, dilation)
        theta = np.broadcast_to(np.eye(2, dtype=int), (shifts.size, 2, 2))
        pooled = structured(images, shifts, theta, sums.shape[1:-1])
        require_equal(pooled, sums, f"grid {grid}, window {window}, size {shifts.size}")
        basis = pooling_basis(grid, window, stride, dilation)
        pattern = count * np.asarray(basis.matrices())[0]
        # (1/n)·n rounds to 1 for every n here, so the pattern is one of zeros and ones.
        totals = np.einsum("mn,bmp->bnp", pattern, images.reshape(2, -1, 2))
        require_equal(totals, sums.reshape(2, -1, 2), f"grid {grid}, window {window}, size 1")
        if basis.size != 1 or shifts.size != count:
            raise EvidenceFailed(f"sizes {basis.size} and {shifts.size} for {count} nodes")
    return f"{len(WINDOWS)} windows with stride and dilation, as one matrix and as |w| shifts"


def there_and_back(run: Run) -> str:
    """Kernel → shifts and Θ → kernel, in any order of the shifts; other shifts have no kernel."""
    for grid, sizes, steps, _ in CUBOIDS:
        kernel, dilation = draw(run, *sizes, 2, 3), [abs(step) for step in steps]
        basis, theta = kernel_to_structure(kernel, grid, dilation=dilation)
        order = run.rng("order", *grid).permutation(basis.size)
        mixed = shift_basis(grid, [basis.shifts[k] for k in order])
        converted = structure_to_kernel(mixed, np.asarray(theta)[order])
        require_equal(np.asarray(converted.kernel), kernel, f"grid {grid}, kernel {sizes}")
    for shifts in ([(0,), (1,), (3,)], list(product((0, 1), (0, 1)))[:3]):
        try:
            structure_to_kernel(shift_basis((5,) * len(shifts[0]), shifts), np.ones((3, 1, 1)))
        except ValueError:
            continue
        raise EvidenceFailed(f"the shifts {shifts} fill no cuboid, but there is a kernel")
    return f"{len(CUBOIDS)} kernels come back; three shifts that fill no cuboid are refused"


CLAIM = Claim(
    id="A19.grid",
    source="Andreoli 2019, Section 2.1, Definition 1 and eq. 6",
    verdict=Verdict.AMENDED,
    kinds=(Kind.IDENTITY,),
    evidence=(
        proved(
            "andreoli2019/grid.v",
            covers="the taps, the dilation and the kernel of eq. 6, with zero padding and outputs "
            "at any places, so at any stride; ε for centred taps of odd size; not: the order of "
            "the flattening, N = ⌈n/s⌉, pooling",
        ),
        proved(
            "andreoli2019/grid_pooling.v",
            covers="average pooling at size 1 and at size |w|, over any window of different taps "
            "and at any outputs, with zeros outside the grid among the |w| terms",
        ),
        certified_identities("A19.grid", "for every input and every Θ", "cuboid", "stride"),
        Evidence("cuboids are kernels", Level.TESTED, cuboids_are_kernels),
        Evidence("the cuboid starts at ε + δ", Level.TESTED, centred_taps),
        Evidence("shifts are their matrices", Level.TESTED, shifts_are_matrices),
        Evidence("δ is dilation", Level.TESTED, steps_are_dilations),
        Evidence("stride leaves the grid", Level.TESTED, strides_leave_the_grid),
        Evidence("average pooling", Level.TESTED, pooling_is_linear),
        Evidence("kernels there and back", Level.TESTED, there_and_back),
    ),
)
