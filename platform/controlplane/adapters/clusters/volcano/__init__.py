"""Kubernetes with Volcano: the cluster binds, gangs at once and by the queues that we keep there.

``docs/volcano.md`` says what is mapped to what, and what of it was never run on Volcano's own scheduler.
"""

from controlplane.adapters.clusters.volcano.cluster import VolcanoCluster

__all__ = ["VolcanoCluster"]
