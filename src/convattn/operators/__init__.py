"""The operators that everything stands on: shifts, convolution, patches, scores, attention."""
