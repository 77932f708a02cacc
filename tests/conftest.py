"""Makes every conversion in the tests check itself, and makes drawn tests draw the same in every
run.

A failure is reported as it was drawn. Hypothesis may take minutes to shrink it;
`pytest --hypothesis-profile=shrink` does so.
"""

import os
import shutil
import sys
import tempfile
from typing import Any

from hypothesis import Phase, settings
from hypothesis.internal.conjecture import providers

from tests.support import once, sample

# Set before Bridge is imported, here and in the processes that tests start. The graph is verified
# after each pass, a rule must leave its node as it was, and inference swallows no exception.
os.environ.setdefault("BRIDGE_DEBUG", "1")

# Hundreds of processes import Bridge. Without kept bytecode each would compile it anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

settings.register_profile("shrink", settings.default)
settings.register_profile(
    "report", settings.default, phases=(Phase.explicit, Phase.reuse, Phase.generate)
)
settings.load_profile("report")

# Hypothesis mixes constants from the loaded source files into its draws. So a derandomized test
# would draw other programs after each edit, and for each order of tests. No setting prevents that.
if hasattr(providers, "_get_local_constants"):
    _none = providers.Constants()
    providers._get_local_constants = lambda: _none


def pytest_addoption(parser: Any) -> None:
    parser.addoption(
        "--whole", action="store_true", help="all cases of the standard and all drawn programs"
    )


def pytest_configure(config: Any) -> None:
    from tests.support import current_builder  # This imports Bridge.

    current_builder.hold()
    sample.WHOLE = config.getoption("--whole")
    if once.FOLDER not in os.environ:  # Workers of pytest-xdist inherit it.
        folder = os.environ[once.FOLDER] = tempfile.mkdtemp(prefix="bridge_tests_")
        config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
        config.add_cleanup(lambda: os.environ.pop(once.FOLDER))
