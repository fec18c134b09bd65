"""Changes to clusters, nodes and cards."""

from apps.fleet.services.card_availability import NodeIsolated, node_set_cordoned
from apps.fleet.services.clusters import cluster_ensure, cluster_error_record
from apps.fleet.services.inventory import (
    PARTITIONED,
    TAKEN,
    UNHEALTHY,
    UNSEEN,
    inventory_record,
)
