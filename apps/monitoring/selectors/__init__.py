"""Queries on faults, isolations, rollouts and alerts."""
