"""Faults of engines: a canary for each, and the forms that avoid them."""
