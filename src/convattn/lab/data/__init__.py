"""Labelled images: the lossless slice of CIFAR-10 that comes with the package, and others.

`convattn.lab.data.batches`, which loads JAX, and `convattn.lab.data.download` are imported by
themselves.
"""

from convattn.lab.data.datasets import Dataset as Dataset
from convattn.lab.data.datasets import read_dataset as read_dataset
from convattn.lab.data.split import validation_split as validation_split
from convattn.lab.data.statistics import channel_statistics as channel_statistics
from convattn.ledger.images.cifar10_slice import CLASS_NAMES as CLASS_NAMES
from convattn.ledger.images.cifar10_slice import DataIntegrityError as DataIntegrityError
from convattn.ledger.images.cifar10_slice import Images as Images
from convattn.ledger.images.cifar10_slice import load_cifar10_slice as load_cifar10_slice
