"""Ifs become selections: both branches run, and Where picks the output of the taken branch.

`ifs` is the pass. `sizes` names sizes, so that equal shapes are recognised. `guards` asks what
protects operators that may fail in the branch that is not taken.
"""
