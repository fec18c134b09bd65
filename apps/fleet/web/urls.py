from __future__ import annotations

from django.urls import path

from apps.fleet.web import chips, clusters

urlpatterns = [
    path("fleet/chips", chips.chips, name="chips"),
    path("fleet/chips/<slug:name>", chips.chip, name="chip"),
    path("fleet/clusters", clusters.clusters, name="clusters"),
    path("fleet/clusters/new", clusters.cluster_new, name="cluster-new"),
    path("fleet/clusters/<str:uid>", clusters.cluster, name="cluster"),
    path("fleet/clusters/<str:uid>/change", clusters.cluster_change, name="cluster-change"),
    path("fleet/clusters/<str:uid>/check", clusters.cluster_check, name="cluster-check"),
    path("fleet/clusters/<str:uid>/remove", clusters.cluster_remove, name="cluster-remove"),
]
