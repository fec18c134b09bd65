"""Reads the cards of its node and sends what it read. Standard library only.

::

    every 5 s   reader ──▶ Batch ──▶ backlog ──▶ POST /api/v1/telemetry/push
                 cpu · nvidia · ascend    at most an hour, the oldest goes first

Two threads: the one that reads keeps its beat on the monotonic clock however slow the network is, and the one
that sends may wait for the control plane as long as it is away. A batch gets its number when it is first sent and
keeps it when it is sent again, so that it counts once.

``python -m ninefold_runtime.agent --server URL --token-file FILE --node NAME`` runs it; see ``docs/agent.md``.
"""
