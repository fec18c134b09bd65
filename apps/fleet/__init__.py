"""Clusters, nodes, cards, and the state of a card."""
