"""The OpenAI-compatible proxy: one plain ASGI app between API clients and the engines.

It imports neither Django nor the control plane. Routes, endpoints and keys come as a signed snapshot
(:mod:`gateway.snapshots`); usage goes back in batches (:mod:`gateway.usage_reporting`). A request passes through
:mod:`gateway.app` (authentication), :mod:`gateway.model_requests` (validation),
:mod:`gateway.rate_limits` (limits of the key), :mod:`gateway.load_balancing` (choice of the endpoint) and
:mod:`gateway.relay` (request to the engine).
"""
