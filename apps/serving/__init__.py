"""Deployments, routes, API keys, usage, and the snapshots that gateways serve from."""
