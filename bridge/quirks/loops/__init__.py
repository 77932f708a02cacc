"""The safe form of a Loop: its clauses, by cause. Their order is in `bridge.quirks.ORDER`."""
