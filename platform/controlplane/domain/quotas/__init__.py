"""Claims and the queue tree: who is guaranteed which cards, who may borrow, and how the tree is changed.

Nothing here imports ``domain.scheduling``, which decides over snapshots of these queues.
"""
