"""The control-flow suite: every small Loop, Scan and If, built from axes that are data.

`python -m tests.control_flow` runs it; `--export DIR` writes it for others.
"""
