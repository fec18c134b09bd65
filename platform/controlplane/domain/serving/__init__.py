"""Serving: lifecycle of deployments and replicas, kinds of models, parallelism of a replica, rollouts."""
