"""Pipelines: several jobs and a deployment as one piece of work."""
