"""The safe form of a Loop: its clauses, by cause. They are one pass."""
