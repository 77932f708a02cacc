"""Readers and writers of both formats."""
