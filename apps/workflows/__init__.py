"""Pipelines: several jobs and a deployment submitted together."""
