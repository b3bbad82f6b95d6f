"""What training does with labelled images: splits, statistics, augmentation, downloads.

`convattn_lab.data.batches`, which loads JAX, and `convattn_lab.data.download` are imported by
themselves.
"""

from convattn_lab.data.split import validation_split as validation_split
from convattn_lab.data.statistics import channel_statistics as channel_statistics
