"""The needs of a process before it imports its libraries. Libraries that get too little memory end
the process in their own ways, with exit codes that have another meaning here."""

import mmap
import os
import sys
from contextlib import suppress

from bridge.errors import BridgeError

NEEDED = 256 << 20
"""Bytes of addresses that numpy, onnx and lxml take, with some to work in."""


def settle() -> None:
    """Sets up a process that only runs a command. Raises BridgeError if the limit of its addresses
    leaves too few."""
    # A thread for each processor takes addresses, and starts slowly; conversions multiply little.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if sys.platform == "win32":
        return
    import resource

    if resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY:
        return
    with suppress(OSError):
        mmap.mmap(-1, NEEDED, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ).close()
        return
    raise BridgeError(
        f"there is too little address space: {NEEDED >> 20} MB are needed; raise the limit "
        "(ulimit -v)"
    )
