"""What the attention heads of a trained model do, measured and drawn."""

from convattn.diagnosis.models import diagnose as diagnose
from convattn.diagnosis.report import Diagnosis as Diagnosis
from convattn.diagnosis.report import LayerDiagnosis as LayerDiagnosis
