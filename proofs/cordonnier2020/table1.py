"""Tables 1 and 4: parameters and FLOPs of the six models.

Printed. ResNet18 11.2M parameters and 1.1B FLOPs; quadratic 12.1M and 6.2B; general quadratic 12.1M and
6.2B; the same pruned 9.7M and 4.9B; learned 12.3M and 6.2B; learned with content 29.5M and 15B.
Pruning reduces "the size of the parameters and the number of FLOPS by a fourth".

Verified. All twelve figures, counted from the layers as the authors' code has them: six layers, nine
heads of width 400, one value map 3600 → 400 over all heads and a further dense map 400 → 400, a
feed-forward width of 512, 256 tokens. The FLOPs come out only when the products with the attention
matrices are left out.

Repair. (1) With A·X counted the quadratic model takes 9.0B FLOPs, and with A·X and Q·Kᵀ the content
model takes 20.7B. (2) Eq. 4 taken literally, a value map for each head and one W_out, has 19.8M
parameters (19.7M in its matrices alone). (3) 12.3M takes 400 numbers per axis; the printed
⌊D_p/2⌋ = 200 gives 12.2M. (4) "By a fourth" is a fifth: 15 of 54 heads take 2.4M of 12.1M
parameters and 1.2B of 6.2B FLOPs with them.

Proof. The sums of `convattn.evidence.model_size`, rounded to the printed digits.
"""

from convattn.evidence.model_size import (
    HEADS,
    INTERMEDIATE,
    LAYERS,
    PRUNED,
    WIDTH,
    Size,
    attention_model,
    resnet18,
)
from convattn.ledger import Claim, Evidence, EvidenceFailed, Kind, Level, Run, Verdict

# Model, parameters in millions and FLOPs in billions, as printed.
PRINTED = (
    ("ResNet18", "11.2", "1.1"),
    ("quadratic", "12.1", "6.2"),
    ("gaussian", "12.1", "6.2"),
    ("gaussian, pruned", "9.7", "4.9"),
    ("learned", "12.3", "6.2"),
    ("content", "29.5", "15"),
)


def counted(model: str) -> Size:
    """The size of a model of the tables."""
    if model == "ResNet18":
        return resnet18()
    if model == "gaussian, pruned":
        return attention_model("gaussian", heads=[HEADS - removed for removed in PRUNED])
    return attention_model(model)


def rounded(count: int, unit: int, printed: str) -> str:
    """A count in units of 10^unit, with as many decimals as the printed figure."""
    decimals = len(printed.partition(".")[2])
    return f"{count / 10**unit:.{decimals}f}"


def printed_figures(run: Run) -> str:
    """Every figure of both tables."""
    seen = []
    for model, parameters, operations in PRINTED:
        size = counted(model)
        found = rounded(size.parameters, 6, parameters), rounded(size.operations, 9, operations)
        if found != (parameters, operations):
            raise EvidenceFailed(
                f"{model}: counted {found[0]}M and {found[1]}B, printed {parameters}M and "
                f"{operations}B ({size})"
            )
        seen.append(f"{model} {size.parameters:,} and {size.operations:,}")
    return "; ".join(seen)


def repaired_figures(run: Run) -> str:
    """What the tables leave out, and what they call a fourth."""
    quadratic, content = attention_model("quadratic"), attention_model("content")
    literal = attention_model("quadratic", separate_values=True)
    matrices = LAYERS * (2 * HEADS * WIDTH * WIDTH + 2 * WIDTH * INTERMEDIATE)
    halved = attention_model("learned", features=WIDTH // 2)
    whole, pruned = attention_model("gaussian"), counted("gaussian, pruned")
    figures = {
        "quadratic with A·X": (rounded(quadratic.operations_with_attention, 9, "9.0"), "9.0"),
        "content with A·X and Q·Kᵀ": (rounded(content.operations_with_attention, 9, ".7"), "20.7"),
        "eq. 4 literally": (rounded(literal.parameters, 6, ".8"), "19.8"),
        "its matrices alone": (rounded(matrices, 6, ".7"), "19.7"),
        "200 numbers per axis": (rounded(halved.parameters, 6, ".2"), "12.2"),
        "share of parameters pruned": (f"{1 - pruned.parameters / whole.parameters:.2f}", "0.20"),
        "share of FLOPs pruned": (f"{1 - pruned.operations / whole.operations:.2f}", "0.20"),
    }
    for name, (found, expected) in figures.items():
        if found != expected:
            raise EvidenceFailed(f"{name}: counted {found}, stated {expected}")
    return "; ".join(f"{name} {found}" for name, (found, _) in figures.items())


CLAIM = Claim(
    id="C20.table1",
    source="Cordonnier, Loukas, Jaggi 2020, Tables 1 and 4, appendix E",
    verdict=Verdict.AMENDED,
    kinds=(Kind.IDENTITY,),
    evidence=(
        Evidence("the printed figures", Level.TESTED, printed_figures),
        Evidence("the repaired figures", Level.TESTED, repaired_figures),
    ),
)
