"""What limits the constructions: ranks, saturation, rounding."""
