from django.db import migrations

from controlplane.outbox.resource_changes import ChangeLogTrigger

_DEPLOYMENT = (
    "(SELECT {} FROM serving_backend AS backend"
    " JOIN serving_revision AS revision ON revision.id = backend.revision_id"
    " JOIN serving_deployment AS deployment ON deployment.id = revision.deployment_id"
    " WHERE backend.id = ROW.backend_id)"
)


_ROUTE = (
    "(SELECT {} FROM serving_route AS route"
    " JOIN serving_deployment AS deployment ON deployment.id = route.deployment_id"
    " WHERE route.id = ROW.{})"
)
_ROUTE_TEAM = "'team:' || deployment.team_id"


class Migration(migrations.Migration):
    dependencies = [
        ("serving", "0004_reasons_as_data"),
        ("outbox", "0002_resource_changes"),
    ]

    operations = [
        ChangeLogTrigger("serving_deployment", owner="'team:' || ROW.team_id"),
        ChangeLogTrigger("serving_apikey", owner="'team:' || ROW.team_id"),
        # The number of ready replicas is part of a deployment.
        ChangeLogTrigger(
            "serving_replica",
            source="serving_deployment",
            uid=_DEPLOYMENT.format("deployment.uid"),
            owner=_DEPLOYMENT.format("'team:' || deployment.team_id"),
            columns=("state",),
        ),
        ChangeLogTrigger("serving_route", owner=_ROUTE.format(_ROUTE_TEAM, "id")),
        # The weights are part of a route.
        ChangeLogTrigger(
            "serving_routebackend",
            source="serving_route",
            uid=_ROUTE.format("route.uid", "route_id"),
            owner=_ROUTE.format(_ROUTE_TEAM, "route_id"),
            columns=("weight",),
        ),
    ]
