"""Readers without If, Loop, Scan and sequences: what they take of the models that Bridge writes."""
