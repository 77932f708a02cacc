"""The safe form of a Loop for OpenVINO's CPU plugin: its clauses, one file each. Their order is in
`bridge.quirks.FOR_IR`."""
