"""Whole networks: convolutions turned into attention layers, and what trained heads do."""

from convattn.networks.diagnosis.diagnose import diagnose as diagnose
from convattn.networks.diagnosis.report import Diagnosis as Diagnosis
from convattn.networks.diagnosis.report import LayerDiagnosis as LayerDiagnosis
