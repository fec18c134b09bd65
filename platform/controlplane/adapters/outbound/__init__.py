"""Calls over HTTP to addresses that were checked first."""

from controlplane.adapters.outbound.http import HttpOutbound

__all__ = ["HttpOutbound"]
