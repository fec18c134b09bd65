"""What administrators see of sharing: the console of queues, and the tables below it."""

from __future__ import annotations

from apps.quotas.admin import queues, rearrangements, tables, usage

__all__ = ["queues", "rearrangements", "tables", "usage"]
