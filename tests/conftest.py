"""Makes drawn tests draw the same in every run."""

from hypothesis.internal.conjecture import providers

# Hypothesis mixes constants from the source files loaded so far into what it draws; a derandomized
# test would draw other programs after each edit, and in each order of tests. There is no setting.
if hasattr(providers, "_get_local_constants"):
    _none = providers.Constants()
    providers._get_local_constants = lambda: _none
