"""Kubernetes as a place where Launches run: every replica a pod, pinned to the node that the scheduler chose."""

from controlplane.adapters.clusters.kubernetes.cluster import KubernetesCluster

__all__ = ["KubernetesCluster"]
