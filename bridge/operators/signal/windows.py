"""HannWindow, HammingWindow, BlackmanWindow."""

from __future__ import annotations
