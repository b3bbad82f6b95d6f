"""The real data that comes with the package: a lossless slice of CIFAR-10, read with NumPy."""

from convattn.data.cifar10 import CLASS_NAMES as CLASS_NAMES
from convattn.data.cifar10 import Images as Images
from convattn.data.cifar10 import load_cifar10_slice as load_cifar10_slice
from convattn.data.integrity import DataIntegrityError as DataIntegrityError
