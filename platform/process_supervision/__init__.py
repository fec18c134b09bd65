"""Processes and their files on Linux, for the launcher and the local cluster: both start and watch processes.

Standard library only. :mod:`process_supervision.processes` identifies, starts, reads and stops processes,
:mod:`process_supervision.process_guard` ties one to the life of its parent, and
:mod:`process_supervision.files` has locks and files that are replaced in one step.
"""
