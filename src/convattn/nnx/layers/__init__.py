"""What Flax modules are made of: linear maps, norms, dropout, and the images that they take."""
