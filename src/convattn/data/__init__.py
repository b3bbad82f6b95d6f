"""Labelled images: the lossless slice of CIFAR-10 that comes with the package, and others'."""

from convattn.data.cifar10_slice import CLASS_NAMES as CLASS_NAMES
from convattn.data.cifar10_slice import DataIntegrityError as DataIntegrityError
from convattn.data.cifar10_slice import Images as Images
from convattn.data.cifar10_slice import load_cifar10_slice as load_cifar10_slice
from convattn.data.datasets import Dataset as Dataset
from convattn.data.datasets import read_dataset as read_dataset
