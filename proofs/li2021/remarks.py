"""Three remarks that no theorem is about: generalisation, ConViT, training time.

Claimed. ViT does poorly on small datasets for lack of generalization, ConViT's initialization works
on pixels only, and the convolutional phase speeds up training.
True. The first and the last rest on training runs not repeated here; the second is right, but
ConViT's layers can be convolutions on patches too, in the limit of sharp attention.

Printed. "This implies that the poor performance of ViT on small datasets is mainly due to its
generalization ability instead of expressive power" (Section 1). Of ConViT: "First, their
initialization strategy only applies in the pixel-input setting. Thus the models can only perform
convolution on images which are [...] downsampled" (Section 5, by 16). "The convolutional phase
helps to accelerate training" (Section 4.2).

Verified. The first is a conclusion that the theorems permit and do not contain: what a layer can
express says nothing of what training finds, and the experiment is NOT RUN (L21.twophase). The
second is true of ConViT's initialisation, which draws no maps between pixels, and not of its
layers: quadratic heads on patches, as its heads are, with Theorem 1's value maps are the
convolution of the image's own pixels. The third is a time of training, NOT RUN; Table 1's times are
in L21.table1.

Repair. Not judged: neither is a statement on layers. What stands under Verified is about the
layers.

Proof. Theorem 1 takes any heads that attend to one patch each; quadratic scores do, in the limit
(C20.lemma2). ∎
"""

from dataclasses import replace

from convattn_ledger import Claim, Kind, Level, Verdict
from convattn_ledger.evidence import equals_convolution

ON_PATCHES = equals_convolution(
    "3 × 3 of pixels by quadratic heads on patches of 4",
    (3, 3),
    patch_size=4,
    encoding="quadratic",
    dtypes=("float32",),
    quick=True,
)

CLAIM = Claim(
    id="L21.remarks",
    source="Li et al. 2021, Sections 1, 4.2 and 5",
    verdict=Verdict.NOT_JUDGED,
    kinds=(Kind.IDENTITY,),
    evidence=(replace(ON_PATCHES, level=Level.TESTED),),
)
