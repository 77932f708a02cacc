"""The texts, pages and pictures of `bridge inspect` and `bridge ops`."""
