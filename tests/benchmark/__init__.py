"""How fast Bridge is, and how fast is what it writes: `python -m tests.benchmark`."""
