"""Starts and stops the product on one machine: environment, database, processes.

``bootstrap`` runs on the system's Python with nothing installed; ``process_guard`` runs between the
supervisor and each supervised process. Both are single files of the standard library. Nothing here imports
Django or ``controlplane``: what the launcher needs of them it runs as a process.
"""
