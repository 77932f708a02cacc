"""Passes, one by one."""
