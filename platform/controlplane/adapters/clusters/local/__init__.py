"""This machine as a cluster of one node.

Every replica has a small supervisor process of its own (``replica``) that writes what it sees into the
Launch's folder (``folders`` has the picture); the control plane only reads and leaves requests there, so
it can be stopped, killed and started again while jobs run.
"""

from controlplane.adapters.clusters.local.cluster import LocalCluster

__all__ = ["LocalCluster"]
