"""Long work without a terminal writes its progress into a log now and then."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

EVERY = 60.0
"""Seconds between two lines."""


@contextmanager
def heartbeat(text: str, say: Callable[[str], None]) -> Iterator[Callable[[str], None]]:
    """Says `text` each minute while the block runs, with the step that was told last. Gives the
    function to tell a step with."""
    step, over, began = "", threading.Event(), time.monotonic()

    def tell(doing: str) -> None:
        nonlocal step
        step = f": {doing}"

    def beat() -> None:
        with suppress(OSError, ValueError):  # nobody reads it any more
            while not over.wait(EVERY):
                say(f"{text}{step} ({round(time.monotonic() - began)} s)")

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield tell
    finally:
        over.set()
        thread.join()
