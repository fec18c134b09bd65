"""This machine as a cluster of one node.

Every replica has a supervisor process of its own (``supervisor``) that writes its state into the Launch's
folder (layout in ``folders``); the control plane only reads it and leaves requests there, so it can be stopped,
killed and started again while jobs run.
"""

from controlplane.adapters.clusters.local.cluster import LocalCluster

__all__ = ["LocalCluster"]
