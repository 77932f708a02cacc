"""The command line, its errors, and the package as people install it."""
