"""Queues, claims, allocations; the scheduling cycle."""
