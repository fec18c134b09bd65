"""Simulation of a cluster: its nodes, and the state of its Launches at any instant.

::

    fleets         a few lines of text ─▶ nodes with cards, rings, NUMA nodes and network domains
    run_profiles   the seed of a Launch ─▶ how long it prepares and runs, and its exit
    lifecycle      a record, faults and an instant ─▶ stage, progress and exit of each replica
    reports        the metrics, log and output files of its processes by then

The functions keep no state. The record of a Launch says what was requested and when; everything else follows from
the record and from the instant of the query, so that every process gets the same result.
"""
