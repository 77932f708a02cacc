"""`bridge check` and what it knows of engines."""
