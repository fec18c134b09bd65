"""A cluster of any size in which nothing runs: for tests, benchmarks and ``make demo``.

``store`` keeps its Launches and faults in one SQLite file, ``cluster`` implements the port from that and the
clock, ``progress_reports`` sends the reports of its processes. Their progress is computed in
``controlplane.domain.simulation``.
"""

from controlplane.adapters.clusters.simulated.cluster import SimulatedCluster

__all__ = ["SimulatedCluster"]
