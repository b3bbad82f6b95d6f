"""What the attention heads of a trained model do, measured and drawn."""
