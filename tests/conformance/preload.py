"""Imported by the fork server: collects the cases before any child is forked."""

from __future__ import annotations

from .cases import cases

cases()
