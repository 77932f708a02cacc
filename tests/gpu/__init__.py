"""OpenVINO's own GPU plugin on a machine without a GPU: `shim/entry.c` says how."""
