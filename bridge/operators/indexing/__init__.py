"""Operators for reading, writing and searching elements by index."""
