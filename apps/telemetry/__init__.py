"""Metrics of cards: their sources, the agents that push them, the newest values and the history."""
