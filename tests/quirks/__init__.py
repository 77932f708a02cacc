"""Faults of engines: a canary for each, and what is written to avoid them."""
