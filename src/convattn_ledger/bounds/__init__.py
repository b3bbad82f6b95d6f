"""Bounds that only evidence asks for: of back ends, of saturation, of heads without a border."""
