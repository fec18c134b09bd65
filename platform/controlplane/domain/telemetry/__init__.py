"""Metrics of cards, and batches of them in columns."""
