"""The loop of pipelines."""
