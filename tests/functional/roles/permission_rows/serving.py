"""Deployments, keys to call them with, and what was called."""

from __future__ import annotations

from tests.functional.roles.permission_rules import ENGINEERS, act, page, rest

_SERVE = {"model_version": "{version}"}
_DEPLOY = {**_SERVE, "team": "{team}", "queue": "{queue.name}", "name": "fresh"}

REST = (
    rest("GET", "deployments"),
    rest("POST", "deployments", may=ENGINEERS, body=_DEPLOY),
    rest("GET", "deployments/{deployment}"),
    rest("DELETE", "deployments/{deployment.stopped}", may=ENGINEERS),
    rest("POST", "deployments/{deployment}/revise", may=ENGINEERS, body=_SERVE),
    rest("POST", "deployments/{deployment}/scale", may=ENGINEERS, body={"replicas": 2}),
    rest("POST", "deployments/{deployment}/stop", may=ENGINEERS),
    rest("POST", "deployments/{deployment.stopped}/start", may=ENGINEERS),
    rest("GET", "replicas/{replica}/log"),
    rest("GET", "keys"),
    rest("POST", "keys", may=ENGINEERS, body={"team": "{team}", "name": "fresh"}),
    rest("GET", "keys/{key}"),
    rest("DELETE", "keys/{key}", may=ENGINEERS),
    rest("GET", "usage"),
    rest("GET", "usage/totals"),
)

PAGES = (
    page("/deployments"),
    page("/deployments/new"),
    act("/deployments/check"),
    act("/deployments/fields", quiet=True),
    page("/deployments/{deployment}"),
    page("/deployments/{deployment}/charts/calls"),
    page("/deployments/{deployment}/logs/{replica}"),
    act("/deployments/{deployment}/revise/check"),
    act("/deployments/{deployment}/revisions/1/roll-back", may=ENGINEERS),
    act("/deployments/of/{version}", may=ENGINEERS),
    page("/deployments/{deployment}/revise", may=ENGINEERS),
    act("/deployments/{deployment}/revise", may=ENGINEERS, body={"model_version": "{version}"}),
    act("/deployments/{deployment}/scale", may=ENGINEERS, body={"replicas": "2"}),
    act("/deployments/{deployment}/stop", may=ENGINEERS),
    act("/deployments/{deployment.stopped}/start", may=ENGINEERS),
    act(
        "/deployments/{deployment.stopped}/delete",
        may=ENGINEERS,
        body={"name": "{deployment.stopped.name}"},
    ),
    page("/playground"),
    act("/playground/{deployment}/chat", may=ENGINEERS),
    page("/keys"),
    page("/keys/new"),
    page("/keys/{key}"),
    page("/keys/{key}/heard"),
    act("/keys/{key}/rotate", may=ENGINEERS, body={"overlap": "1"}),
    act("/keys/{key}/revoke", may=ENGINEERS),
)
