"""B19 §6.1 as an experiment: do two images show the same class?"""
