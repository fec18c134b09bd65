"""Kubernetes with Volcano: the cluster binds pods, schedules gangs, and has a copy of our queues.

``docs/volcano.md`` describes the mapping, and what was never run on Volcano's own scheduler.
"""

from controlplane.adapters.clusters.volcano.cluster import VolcanoCluster

__all__ = ["VolcanoCluster"]
