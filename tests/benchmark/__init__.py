"""The speed of Bridge and of the models that it writes: `python -m tests.benchmark`."""
