"""Methods that explain vision transformers, and how well they do where the truth is known."""
