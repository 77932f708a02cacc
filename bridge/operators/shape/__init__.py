"""Operators that change the shape of a tensor or move whole axes."""
