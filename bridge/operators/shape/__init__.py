"""Operators that change a tensor's shape or move whole axes."""
