"""Tests of single passes."""
