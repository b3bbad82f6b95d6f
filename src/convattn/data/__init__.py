"""Labelled images: the lossless slice of CIFAR-10 that comes with the package, and others.

`convattn.data.batches`, which loads JAX, and `convattn.data.download` are imported by themselves.
"""

from convattn.data.cifar10 import CLASS_NAMES as CLASS_NAMES
from convattn.data.cifar10 import Images as Images
from convattn.data.cifar10 import load_cifar10_slice as load_cifar10_slice
from convattn.data.datasets import Dataset as Dataset
from convattn.data.datasets import read_dataset as read_dataset
from convattn.data.integrity import DataIntegrityError as DataIntegrityError
from convattn.data.split import validation_split as validation_split
from convattn.data.statistics import channel_statistics as channel_statistics
