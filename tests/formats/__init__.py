"""Tests of the readers and writers of both formats."""
