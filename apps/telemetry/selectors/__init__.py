"""Queries on metric sources, agents and metrics of cards."""
