"""Ifs become selections: both branches run, and Where picks what the branch that counts gives.

`ifs` is the pass; `sizes` names sizes, so that equal shapes can be told; `guards` makes safe what
may fail in the branch that does not count.
"""
