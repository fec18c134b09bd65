"""Addresses of the fleet's health: figures and where they come from, cards, faults, waste."""

from __future__ import annotations

from django.urls import path

from apps.monitoring.web import (
    agents,
    cards,
    exposure,
    faults,
    fleet,
    fleet_map,
    held_back,
    isolations,
    sources,
    waste,
)

_CARD = "fleet/cards/<str:uid>"
_SOURCE = "fleet/sources/<str:uid>"
_NODE = "fleet/clusters/<str:uid>/nodes/<str:name>"

urlpatterns = [
    path("fleet", fleet.fleet_overview, name="fleet"),
    path("fleet/map", fleet_map.fleet_map, name="fleet-map"),
    path("fleet/map/cards.json", fleet_map.fleet_map_cards, name="fleet-map-cards"),
    path("fleet/map/card", fleet_map.fleet_map_card, name="fleet-map-card"),
    path(_CARD, cards.card, name="card"),
    path(f"{_CARD}/isolate", isolations.card_isolate, name="card-isolate"),
    path(f"{_CARD}/release", isolations.card_release, name="card-release"),
    path(f"{_CARD}/test", isolations.card_test, name="card-test"),
    path(f"{_CARD}/<slug:chart>.json", cards.card_chart, name="card-chart"),
    path("fleet/faults", faults.faults, name="faults"),
    path("fleet/faults/acknowledge", faults.faults_acknowledged, name="faults-acknowledge"),
    path("fleet/faults/isolate", faults.faults_isolated, name="faults-isolate"),
    path("fleet/faults/release", faults.faults_released, name="faults-release"),
    path("fleet/held-back", held_back.held_back, name="held-back"),
    path("fleet/held-back/isolate", held_back.held_back_isolated, name="held-back-isolate"),
    path("fleet/held-back/leave", held_back.held_back_left, name="held-back-leave"),
    path("fleet/sources", sources.sources, name="sources"),
    path("fleet/sources/new", sources.source_new, name="source-new"),
    path("fleet/sources/agents", agents.agents, name="agents"),
    path("fleet/sources/tokens/new", agents.token_new, name="node-token-new"),
    path("fleet/sources/tokens/<str:uid>/revoke", agents.token_revoke, name="node-token-revoke"),
    path(_SOURCE, sources.source, name="source"),
    path(f"{_SOURCE}/change", sources.source_change, name="source-change"),
    path(f"{_SOURCE}/try", sources.source_try, name="source-try"),
    path(f"{_SOURCE}/pause", sources.source_pause, name="source-pause"),
    path(f"{_SOURCE}/resume", sources.source_resume, name="source-resume"),
    path(f"{_SOURCE}/delete", sources.source_delete, name="source-delete"),
    path("fleet/waste", waste.waste, name="waste"),
    path("fleet/exposure", exposure.exposure, name="exposure"),
    path(f"{_NODE}/isolate", isolations.node_isolate, name="node-isolate"),
    path(f"{_NODE}/release", isolations.node_release, name="node-release"),
]
