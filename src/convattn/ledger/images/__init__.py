"""The real images that evidence is checked on: a lossless slice of CIFAR-10."""
