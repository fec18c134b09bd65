"""Serving: lifecycle of deployments and replicas, parallelism of a replica, rollout strategies."""
