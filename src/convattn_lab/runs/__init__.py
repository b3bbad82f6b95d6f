"""Runs: what one trains with which settings on which images, and the folder that it leaves."""
