"""The loops of jobs."""
