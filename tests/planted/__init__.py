"""Pairs of a model and a file that is wrong in one place, for `bridge check` to find.

`python -m tests.planted` makes them, and runs the check on each. Nothing here asks how the check
looks for a difference: a fault is planted in the written file and counts if some input of the
model's domain shows it to an engine.
"""
