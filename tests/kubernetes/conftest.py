"""Fixtures of this folder: each cluster is started by the first test that needs it, once."""

from tests.kubernetes.crowds import crowd

__all__ = ["crowd"]
