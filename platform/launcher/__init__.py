"""Starts and stops the product on one machine: environment, database, processes.

``bootstrap`` runs on the system's Python with nothing installed: a single file of the standard library. The
other modules use :mod:`process_supervision`, as the local cluster does. Nothing here imports Django or
``controlplane``: what the launcher needs of them it runs as a process.
"""
