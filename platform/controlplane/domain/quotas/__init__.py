"""Claims and the queue tree: guaranteed cards, borrowing, and changes of the tree.

Nothing here imports ``domain.scheduling``, which decides over snapshots of these queues.
"""
