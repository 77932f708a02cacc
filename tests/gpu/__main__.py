"""`python -m tests.gpu [TEXT] [--store]`: what forms of Ifs and Loops, and faults, give on the
emulated device. See `tests.gpu.forms`."""

import argparse
import os

from tests.gpu import device, forms

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.gpu", description=forms.__doc__)
    parser.add_argument("text", nargs="?", default="", help="in the names of what is run")
    parser.add_argument("--store", action="store_true", help="keep what is found")
    given = parser.parse_args()
    os.environ.update(device.environment())
    forms.run(given.text, given.store)
