from __future__ import annotations

from django.urls import path

from apps.console.web import (
    cards,
    clusters,
    fleet,
    fleet_map,
    fleet_reports,
    home,
    lineage,
    models,
    search,
    system_status,
)

_CARD = "fleet/cards/<str:uid>"
_CLUSTER = "fleet/clusters/<str:uid>"
_NODE = f"{_CLUSTER}/nodes/<str:name>"
_VERSION = "models/versions/<str:uid>"

urlpatterns = [
    path("fleet", fleet.fleet_overview, name="fleet"),
    path("fleet/map", fleet_map.fleet_map, name="fleet-map"),
    path("fleet/map/cards.json", fleet_map.fleet_map_data, name="fleet-map-cards"),
    path("fleet/map/card", fleet_map.redirect_to_fleet_map_card, name="fleet-map-card"),
    path(_CARD, cards.card_detail, name="card"),
    path(f"{_CARD}/<slug:chart>.json", cards.card_chart, name="card-chart"),
    path("fleet/waste", fleet_reports.idle_allocation, name="waste"),
    path("fleet/exposure", fleet_reports.vendor_concentration, name="exposure"),
    path("", home.home_dashboard, name="home"),
    path("fleet/clusters", clusters.cluster_list, name="clusters"),
    path("fleet/clusters/new", clusters.cluster_new, name="cluster-new"),
    path(_CLUSTER, clusters.cluster_detail, name="cluster"),
    path(f"{_CLUSTER}/change", clusters.cluster_change, name="cluster-change"),
    path(f"{_CLUSTER}/check", clusters.cluster_check, name="cluster-check"),
    path(f"{_CLUSTER}/remove", clusters.cluster_remove, name="cluster-remove"),
    path(_NODE, fleet.node_detail, name="node"),
    path(f"{_NODE}/cordon", fleet.node_set_cordoned, {"cordoned": True}, name="node-cordon"),
    path(f"{_NODE}/uncordon", fleet.node_set_cordoned, {"cordoned": False}, name="node-uncordon"),
    path("models", models.model_line_list, name="models"),
    path(_VERSION, models.model_version_detail, name="model-version"),
    path(
        f"{_VERSION}/quantization", models.version_quantization, name="model-version-quantization"
    ),
    path(f"{_VERSION}/weights", models.version_weights, name="model-version-weights"),
    path(
        "models/weight-downloads/<str:uid>/delete",
        models.weight_download_delete,
        name="weight-download-delete",
    ),
    path("models/<str:uid>", models.model_line_detail, name="model"),
    path("datasets/versions/<str:uid>/lineage", lineage.dataset_lineage, name="dataset-lineage"),
    path("search", search.search, name="search"),
    path("status", system_status.system_status_page, name="status"),
]
