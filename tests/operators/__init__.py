"""Operators: each against both engines."""
