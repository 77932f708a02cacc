"""Records in a model's metadata: its boundary, its state, and what a conversion made of them.

`entry.py` reads and writes any record as JSON. The other files declare the records, each with the
key under which it stands.
"""
