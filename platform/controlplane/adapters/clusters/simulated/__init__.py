"""A cluster of any size in which nothing runs: for tests, benchmarks and ``make demo``.

``records`` keeps what was asked of it in one SQLite file, ``cluster`` answers the port from that and the clock,
``reporting`` is the voice of its processes. What goes on is decided in ``controlplane.domain.simulation``.
"""

from controlplane.adapters.clusters.simulated.cluster import SimulatedCluster

__all__ = ["SimulatedCluster"]
