"""What the runs of `experiments/cifar.py` learned: numbers, tables and pictures from their folders.

Each analysis has a function that computes plain arrays from the folder of a run, and one that
draws them. Only drawing needs matplotlib.
"""
