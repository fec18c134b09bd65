"""The OpenAI-compatible proxy: one plain ASGI app between API clients and the engines.

It imports neither Django nor the control plane. What it may serve comes as a signed snapshot
(:mod:`gateway.snapshots`, :mod:`gateway.feeds`), what it served goes back as usage batches
(:mod:`gateway.journals`, :mod:`gateway.usage`). A request passes through :mod:`gateway.app` (who
may call), :mod:`gateway.calls` (what is asked), :mod:`gateway.limits` (how much),
:mod:`gateway.tables` (which endpoint) and :mod:`gateway.relays` (the exchange with the engine).
"""
