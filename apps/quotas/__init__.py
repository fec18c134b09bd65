"""Queues, claims and allocations; the scheduling cycle and the usage ledger."""
