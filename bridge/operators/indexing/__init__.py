"""Operators that pick, place or search elements by index."""
