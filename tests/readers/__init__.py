"""Readers without If, Loop, Scan and sequences: the share of Bridge's models that they can read."""
