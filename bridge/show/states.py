"""The possible results of a check for a branch."""

STATES = {
    "reached": "reached by inputs",
    "forced": "forced and equal",
    "pruned": "pruned",
    "failing": "cannot run",
    "unknown": "not shown",
    "different": "DIFFERENT",
}
"""As scripts and as people read them."""
