"""Models as other tools change them, and their conversions; see `__main__`."""
