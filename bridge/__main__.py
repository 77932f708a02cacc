"""`python -m bridge` is `bridge`."""

import os
import sys

# Python puts the current directory first in the path. Only Bridge is imported from there.
if not sys.flags.safe_path and sys.path[0] != os.path.dirname(os.path.dirname(__file__)):
    del sys.path[0]

from bridge.cli import main

main()
