"""Variables."""
