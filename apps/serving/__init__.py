"""Deployments, routes, keys, usage; what gateways are told."""
