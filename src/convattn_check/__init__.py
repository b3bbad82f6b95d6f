"""The independent checker of certificates: standard library only."""
