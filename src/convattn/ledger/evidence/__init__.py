"""Pieces of evidence that several claims share: certificates, real images, enclosures."""

from convattn.ledger.evidence.certified import certified as certified
from convattn.ledger.evidence.certified import certified_identities as certified_identities
from convattn.ledger.evidence.certified import print_counterexample as print_counterexample
from convattn.ledger.evidence.enclosures import bias_saturation_enclosed as bias_saturation_enclosed
from convattn.ledger.evidence.enclosures import total_variation_enclosed as total_variation_enclosed
from convattn.ledger.evidence.exact_convolution import exact_convolution as exact_convolution
from convattn.ledger.evidence.layer_runs import DTYPES as DTYPES
from convattn.ledger.evidence.layer_runs import EXP as EXP
from convattn.ledger.evidence.layer_runs import EXP_AND_LOG1P as EXP_AND_LOG1P
from convattn.ledger.evidence.layer_runs import UNDERFLOW as UNDERFLOW
from convattn.ledger.evidence.layer_runs import applied as applied
from convattn.ledger.evidence.layer_runs import converted as converted
from convattn.ledger.evidence.layer_runs import equals_convolution as equals_convolution
from convattn.ledger.evidence.layer_runs import integer_kernel as integer_kernel
from convattn.ledger.evidence.proved import proved as proved
from convattn.ledger.evidence.real_images import whole_images as whole_images
