"""The models of C20's experiments as Flax NNX modules: self-attention encoders, and a ResNet.

A model takes normalised images `[batch, height, width, channels]` and gives logits
`[batch, classes]`. It holds parameters and batch statistics, and no random state: dropout draws
from the key that is passed in.
"""
