"""Starts and stops the product on one machine: environment, database, processes.

``bootstrap`` runs on the system's Python with nothing installed; ``guardian`` runs between the
supervisor and each process it keeps. Both are single files of the standard library. Nothing here
imports Django or ``controlplane``: what the launcher needs of them it runs as a process.
"""
