"""Tests of operators, each against both engines."""
