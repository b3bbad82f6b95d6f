"""Pieces of evidence that several claims share: certificates, real images, enclosures."""

from convattn_ledger.evidence.certified import certified as certified
from convattn_ledger.evidence.certified import certified_identities as certified_identities
from convattn_ledger.evidence.certified import print_counterexample as print_counterexample
from convattn_ledger.evidence.enclosures import bias_saturation_enclosed as bias_saturation_enclosed
from convattn_ledger.evidence.enclosures import total_variation_enclosed as total_variation_enclosed
from convattn_ledger.evidence.exact_convolution import exact_convolution as exact_convolution
from convattn_ledger.evidence.layer_runs import DTYPES as DTYPES
from convattn_ledger.evidence.layer_runs import EXP as EXP
from convattn_ledger.evidence.layer_runs import EXP_AND_LOG1P as EXP_AND_LOG1P
from convattn_ledger.evidence.layer_runs import UNDERFLOW as UNDERFLOW
from convattn_ledger.evidence.layer_runs import applied as applied
from convattn_ledger.evidence.layer_runs import converted as converted
from convattn_ledger.evidence.layer_runs import equals_convolution as equals_convolution
from convattn_ledger.evidence.layer_runs import integer_kernel as integer_kernel
from convattn_ledger.evidence.proved import proved as proved
from convattn_ledger.evidence.real_images import whole_images as whole_images
