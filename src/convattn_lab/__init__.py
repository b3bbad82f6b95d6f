"""What the experiments stand on: data, models, training, runs, and what is read from them."""
