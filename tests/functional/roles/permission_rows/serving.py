"""Deployments, keys to call them with, and what was called."""

from __future__ import annotations

from tests.functional.roles.permission_rules import ENGINEERS, action_row, page, rest

_SERVE = {"model_version": "{version}"}
_DEPLOY = {**_SERVE, "team": "{team}", "queue": "{queue.name}", "name": "fresh"}

REST = (
    rest("GET", "deployments"),
    rest("POST", "deployments", may=ENGINEERS, body=_DEPLOY),
    rest("GET", "deployments/{deployment}"),
    rest("GET", "deployments/{deployment}/events"),
    rest("DELETE", "deployments/{deployment.stopped}", may=ENGINEERS),
    rest("DELETE", "deployments/{deployment}", may=ENGINEERS),
    rest("POST", "deployments/{deployment}/revise", may=ENGINEERS, body=_SERVE),
    rest("PATCH", "deployments/{deployment}", may=ENGINEERS, body={"max_surge": "25%"}),
    rest("POST", "deployments/{deployment}/rollout/pause", may=ENGINEERS),
    rest("POST", "deployments/{deployment.paused}/rollout/resume", may=ENGINEERS),
    rest("POST", "deployments/{deployment.revised}/rollout/undo", may=ENGINEERS),
    rest("POST", "deployments/{deployment}/scale", may=ENGINEERS, body={"replicas": 2}),
    rest("POST", "deployments/{deployment}/stop", may=ENGINEERS),
    rest("POST", "deployments/{deployment.stopped}/start", may=ENGINEERS),
    rest("GET", "weight-downloads"),
    rest(
        "POST",
        "weight-downloads",
        may=ENGINEERS,
        body={**_SERVE, "team": "{team}", "cluster": "{cluster}"},
    ),
    rest("GET", "weight-downloads/{weight_download}"),
    rest("DELETE", "weight-downloads/{weight_download}", may=ENGINEERS),
    rest("GET", "routes"),
    rest("GET", "routes/{route}"),
    rest(
        "PATCH",
        "routes/{route}",
        may=ENGINEERS,
        body={"backends": [{"deployment": "{deployment}", "weight": 1}]},
    ),
    rest("GET", "replicas/{replica}/log"),
    rest("GET", "keys"),
    rest("POST", "keys", may=ENGINEERS, body={"team": "{team}", "name": "fresh"}),
    rest("GET", "keys/{key}"),
    rest("PATCH", "keys/{key}", may=ENGINEERS, body={"name": "renamed"}),
    rest("DELETE", "keys/{key}", may=ENGINEERS),
    rest("GET", "usage"),
    rest("GET", "usage/totals"),
)

PAGES = (
    page("/deployments"),
    page("/deployments/new"),
    action_row("/deployments/check"),
    action_row("/deployments/fields", quiet=True),
    page("/deployments/{deployment}"),
    page("/deployments/{deployment}/charts/calls"),
    page("/deployments/{deployment}/logs/{replica}"),
    action_row("/deployments/{deployment}/revise/check"),
    action_row("/deployments/{deployment}/revisions/1/roll-back", may=ENGINEERS),
    action_row("/deployments/of/{version}", may=ENGINEERS),
    page("/deployments/{deployment}/revise", may=ENGINEERS),
    action_row(
        "/deployments/{deployment}/revise", may=ENGINEERS, body={"model_version": "{version}"}
    ),
    action_row("/deployments/{deployment}/scale", may=ENGINEERS, body={"replicas": "2"}),
    action_row("/deployments/{deployment}/rollout/pause", may=ENGINEERS),
    action_row("/deployments/{deployment.paused}/rollout/resume", may=ENGINEERS),
    action_row("/deployments/{deployment.revised}/rollout/undo", may=ENGINEERS),
    action_row("/deployments/{deployment}/stop", may=ENGINEERS),
    action_row("/deployments/{deployment.stopped}/start", may=ENGINEERS),
    action_row(
        "/deployments/{deployment.stopped}/delete",
        may=ENGINEERS,
        body={"name": "{deployment.stopped.name}"},
    ),
    page("/playground"),
    action_row("/playground/{deployment}/chat", may=ENGINEERS),
    page("/keys"),
    page("/keys/new"),
    page("/keys/{key}"),
    page("/keys/{key}/heard"),
    action_row("/keys/{key}/rotate", may=ENGINEERS, body={"overlap": "1"}),
    action_row("/keys/{key}/revoke", may=ENGINEERS),
)
