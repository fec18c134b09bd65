"""Who may do what: one row for each address and method, whoever's thing it is about.

A path names the things that it is about, ``/jobs/{job}``; the same row is tried with the own team's things and
with another's. What follows from that is not said again in each row (see ``expected``):

- a stranger, and somebody who was deactivated, are asked to log in;
- another team's thing is not there, for everybody but the administrators of the company;
- an own thing may be seen by every member, and what is more needs one of the roles in ``may``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

STRANGERS = ("anonymous", "deactivated")
COMPANY = frozenset({"company"})
TEAM_ADMINS = COMPANY | {"administrator"}
ENGINEERS = TEAM_ADMINS | {"engineer", "queue_admin"}
#: They administer something, and may see how the product itself does.
STAFF = TEAM_ADMINS | {"queue_admin", "operator"}
MEMBERS = ENGINEERS | {"viewer", "operator"}
EVERYBODY = MEMBERS | set(STRANGERS)
#: Who made the own team's things: ``engineer`` is that person.
OWNER = frozenset({"engineer"})


class Whose(StrEnum):
    OWN = "own"
    OTHER = "other"


class Outcome(StrEnum):
    #: Let through: done, or refused for another reason than who asks.
    DONE = "done"
    LOG_IN = "log in"
    FORBIDDEN = "forbidden"
    ABSENT = "absent"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One method of one address."""

    method: str
    #: ``{…}`` stands for the public name of a thing (``tests/functional/roles/sides.py``).
    path: str
    may: frozenset[str] = MEMBERS
    #: Sent as a form by pages, as JSON by REST; ``{…}`` as in the path.
    body: Mapping[str, Any] = field(default_factory=dict)
    #: To those who may not, it is as if it did not exist.
    hidden: bool = False
    #: What is not one's own is passed over in silence: a bulk act does the rest.
    quiet: bool = False
    #: Things on the path that belong to no team are there for everybody.
    company_wide: bool = False

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def of_a_team(self) -> bool:
        return "{" in self.path and not self.company_wide

    @property
    def names_a_team(self) -> bool:
        """Whether something of a team is named only in the body."""
        said = " ".join(map(str, self.body.values()))
        return not self.of_a_team and "{" in said.replace("{soon}", "")


def expected(row: Row, *, who: str, whose: Whose) -> Outcome:
    """What has to happen."""
    if who in STRANGERS:
        if who in row.may:
            return Outcome.DONE
        return Outcome.ABSENT if row.hidden and not row.of_a_team else Outcome.LOG_IN
    # Whom something is hidden from learns nothing about the other team either way.
    refused = Outcome.ABSENT if row.hidden else Outcome.FORBIDDEN
    if row.quiet:
        return Outcome.DONE
    if whose is Whose.OTHER and (row.of_a_team or row.names_a_team) and who != "company":
        return Outcome.ABSENT
    return Outcome.DONE if who in row.may else refused


def _rest(method: str, path: str, **more: Any) -> Row:
    return Row(method=method, path=f"/api/v1/{path}", **more)


_JOB = {
    "kind": "script",
    "name": "try",
    "team": "{team}",
    "queue": "{queue}",
    "spec": {"argv": ["true"]},
}
_SERVE = {"model_version": "{version}"}
_DECISION = {"reason": "looked at its answers"}

#: Stands for a small file of rows in a body, which is then sent as a form.
ROWS_FILE = "@rows.jsonl"
#: … and for an archive of a program.
CODE_FILE = "@code.tar.gz"
_UPLOAD = {"team": "{team}", "name": "fresh", "file": ROWS_FILE}
_MODEL_JOB = {
    "kind": "evaluate",
    "name": "try",
    "team": "{team}",
    "queue": "{queue.name}",
    "model_version": "{version}",
    "dataset_version": "{dataset_version}",
}
_HOOK = {
    "team": "{team}",
    "name": "fresh",
    "url": "https://hooks.example.com/",
    "kinds": ["job.failed"],
}
_PIPELINE = {
    "name": "try",
    "team": "{team}",
    "queue": "{queue.name}",
    "model_version": "{version}",
    "steps": [{"kind": "deploy", "deployment_name": "fresh"}],
}
_DEPLOY = {**_SERVE, "team": "{team}", "queue": "{queue.name}", "name": "fresh"}

REST = (
    _rest("GET", "schema", may=EVERYBODY),
    _rest("GET", "docs", may=EVERYBODY),
    _rest("GET", "me"),
    _rest("GET", "tokens"),
    _rest("POST", "tokens", body={"name": "fresh", "scopes": ["read"], "expires_at": "{soon}"}),
    _rest("DELETE", "tokens/{token}", may=OWNER, hidden=True),
    _rest("GET", "teams"),
    _rest("POST", "teams", may=COMPANY, body={"name": "Fresh", "slug": "fresh"}),
    _rest("GET", "teams/{team}"),
    _rest("GET", "teams/{team}/members"),
    _rest(
        "PUT",
        "teams/{team}/members/{person.viewer}",
        may=TEAM_ADMINS,
        body={"roles": ["operator"]},
    ),
    _rest("DELETE", "teams/{team}/members/{person.viewer}", may=TEAM_ADMINS),
    # Whose team one does not administer, of that one sees nothing: the list is empty.
    _rest("GET", "audit"),
    _rest("GET", "status", may=STAFF),
    _rest("GET", "chips"),
    _rest("GET", "chips/nvidia-h800"),
    _rest("GET", "clusters"),
    _rest("GET", "clusters/{cluster}", company_wide=True),
    _rest("GET", "nodes"),
    _rest("GET", "nodes/{node}", company_wide=True),
    _rest("GET", "cards"),
    _rest("GET", "cards/{card}", company_wide=True),
    _rest("GET", "datasets"),
    _rest("POST", "datasets", may=ENGINEERS, body=_UPLOAD),
    _rest("POST", "datasets/inspect", body={"file": ROWS_FILE}),
    _rest("GET", "datasets/{dataset}"),
    _rest("GET", "dataset-versions"),
    _rest("GET", "dataset-versions/{dataset_version}"),
    _rest("GET", "dataset-versions/{dataset_version}/rows"),
    _rest("GET", "models"),
    _rest("GET", "models/{line}"),
    _rest("GET", "model-versions"),
    _rest("GET", "model-versions/folders"),
    _rest(
        "POST",
        "model-versions/import",
        may=ENGINEERS,
        body={"team": "{team}", "name": "fresh", "path": "/nowhere"},
    ),
    _rest(
        "POST",
        "model-versions/fetch",
        may=ENGINEERS,
        body={
            "team": "{team}",
            "name": "fresh",
            "hub": "huggingface",
            "repository": "nowhere",
            "revision": "main",
        },
    ),
    _rest("GET", "model-versions/{version}"),
    _rest("GET", "model-versions/{version}/lineage"),
    _rest("POST", "model-versions/{version.failed}/retry", may=ENGINEERS),
    _rest("POST", "model-versions/{version.failed}/cancel", may=ENGINEERS),
    _rest("POST", "model-versions/{version.unfit}/accept", may=ENGINEERS, body=_DECISION),
    _rest("POST", "model-versions/{version.unfit}/reject", may=ENGINEERS, body=_DECISION),
    _rest("GET", "evaluations"),
    _rest("GET", "evaluations/{evaluation}"),
    _rest("GET", "evaluations/{evaluation}/report"),
    _rest("GET", "artifacts/{artifact}"),
    _rest("GET", "artifacts/{artifact}/files/answer.txt"),
    _rest("GET", "queues"),
    _rest("GET", "queues/{queue}"),
    _rest("GET", "claims"),
    _rest("GET", "claims/{claim}"),
    _rest("POST", "code", may=ENGINEERS, body={"team": "{team}", "file": CODE_FILE}),
    _rest(
        "POST",
        "sizing",
        body={"catalog": "qwen2-7b-instruct", "chip": "cpu"},
    ),
    _rest("GET", "catalog"),
    _rest("GET", "catalog/qwen2-7b-instruct"),
    _rest("GET", "engines"),
    _rest("GET", "jobs"),
    _rest("POST", "jobs", may=ENGINEERS, body={**_JOB, "queue": "{queue.name}"}),
    _rest("POST", "jobs/check", body=_MODEL_JOB),
    _rest("POST", "jobs/render", body={**_MODEL_JOB, "on": ["cpu", "nvidia-h800"]}),
    _rest("GET", "jobs/{job}"),
    _rest("GET", "jobs/{job}/attempts"),
    _rest("POST", "jobs/{job}/cancel", may=ENGINEERS),
    _rest("GET", "jobs/{job}/curve"),
    _rest("GET", "jobs/{job}/events"),
    _rest("GET", "jobs/{job.succeeded}/log"),
    _rest("POST", "jobs/{job.failed}/retry", may=ENGINEERS),
    _rest("GET", "pipelines"),
    _rest("POST", "pipelines", may=ENGINEERS, body=_PIPELINE),
    _rest("POST", "pipelines/check", body=_PIPELINE),
    _rest("GET", "pipelines/{pipeline}"),
    _rest("GET", "pipelines/{pipeline}/events"),
    _rest("POST", "pipelines/{pipeline}/cancel", may=ENGINEERS),
    _rest("POST", "pipelines/{pipeline.failed}/retry", may=ENGINEERS),
    _rest("POST", "pipelines/{pipeline.held}/wave", may=ENGINEERS, body={"reason": "I looked"}),
    _rest("GET", "deployments"),
    _rest("POST", "deployments", may=ENGINEERS, body=_DEPLOY),
    _rest("GET", "deployments/{deployment}"),
    _rest("DELETE", "deployments/{deployment.stopped}", may=ENGINEERS),
    _rest("POST", "deployments/{deployment}/revise", may=ENGINEERS, body=_SERVE),
    _rest("POST", "deployments/{deployment}/scale", may=ENGINEERS, body={"replicas": 2}),
    _rest("POST", "deployments/{deployment}/stop", may=ENGINEERS),
    _rest("POST", "deployments/{deployment.stopped}/start", may=ENGINEERS),
    _rest("GET", "replicas/{replica}/log"),
    _rest("GET", "keys"),
    _rest("POST", "keys", may=ENGINEERS, body={"team": "{team}", "name": "fresh"}),
    _rest("GET", "keys/{key}"),
    _rest("DELETE", "keys/{key}", may=ENGINEERS),
    _rest("GET", "usage"),
    _rest("GET", "usage/totals"),
    _rest("GET", "notifications"),
    _rest("POST", "notifications/read-all"),
    _rest("GET", "notifications/{notification}", may=OWNER, hidden=True),
    _rest("POST", "notifications/{notification}/read", may=OWNER, hidden=True),
    _rest("GET", "webhooks"),
    _rest("POST", "webhooks", may=TEAM_ADMINS, body=_HOOK),
    _rest("GET", "webhooks/{webhook}", may=TEAM_ADMINS, hidden=True),
    _rest("PATCH", "webhooks/{webhook}", may=TEAM_ADMINS, hidden=True, body={"active": False}),
    _rest("DELETE", "webhooks/{webhook}", may=TEAM_ADMINS, hidden=True),
    _rest("POST", "webhooks/{webhook}/rotate", may=TEAM_ADMINS, hidden=True),
    _rest("POST", "webhooks/{webhook}/test", may=TEAM_ADMINS, hidden=True),
    _rest("GET", "deliveries"),
    _rest("GET", "deliveries/{delivery}", may=TEAM_ADMINS, hidden=True),
    _rest("POST", "deliveries/{delivery}/again", may=TEAM_ADMINS, hidden=True),
    _rest("GET", "storage"),
    _rest("GET", "storage/plan"),
    _rest("GET", "storage/rules"),
    _rest("PUT", "storage/rules/{team}", may=TEAM_ADMINS, body={"rules": []}),
    _rest("DELETE", "storage/rules/{team}", may=TEAM_ADMINS),
    _rest("PUT", "storage/quotas/{team}", may=COMPANY, body={"bytes": 1 << 40}),
    _rest("GET", "storage/runs"),
    _rest("GET", "storage/artifacts"),
    _rest("GET", "storage/artifacts/{artifact}"),
    _rest("DELETE", "storage/artifacts/{artifact}", may=ENGINEERS),
    _rest("POST", "storage/artifacts/{artifact}/pin", may=ENGINEERS),
    _rest("POST", "storage/artifacts/{artifact}/unpin", may=ENGINEERS),
    _rest("POST", "storage/artifacts/{artifact}/remove", may=ENGINEERS),
    _rest("POST", "storage/artifacts/{artifact}/restore", may=ENGINEERS),
)


def _page(path: str, **more: Any) -> Row:
    return Row(method="GET", path=path, **more)


def _act(path: str, **more: Any) -> Row:
    return Row(method="POST", path=path, **more)


PAGES = (
    _page("/"),
    _page("/login", may=EVERYBODY),
    _act("/logout", may=EVERYBODY),
    _act("/i18n/setlang/", may=EVERYBODY, body={"language": "en", "next": "/"}),
    _page("/password/reset/sent", may=EVERYBODY),
    _page("/password/set/MQ/set-password", may=EVERYBODY),
    _page("/profile"),
    _act("/profile/details", body={"language": "", "time_zone": ""}),
    _page("/profile/password"),
    _act("/profile/sessions/end"),
    _act("/profile/tokens/{token}/revoke", may=OWNER, hidden=True),
    _page("/teams"),
    _page("/teams/new", may=COMPANY),
    _act("/teams/new", may=COMPANY, body={"name": "Fresh", "slug": "fresh"}),
    _page("/teams/{team.slug}"),
    _act(
        "/teams/{team.slug}",
        may=TEAM_ADMINS,
        body={"person": "free", "roles": ["viewer"]},
    ),
    _act("/teams/{team.slug}/rename", may=COMPANY, body={"name": "Fresh"}),
    _page("/teams/{team.slug}/members/{person.viewer}", may=TEAM_ADMINS),
    _act(
        "/teams/{team.slug}/members/{person.viewer}",
        may=TEAM_ADMINS,
        body={"roles": ["operator"]},
    ),
    _act("/teams/{team.slug}/members/{person.viewer}/remove", may=TEAM_ADMINS),
    _page("/people", may=COMPANY),
    _page("/people/new", may=COMPANY),
    _act("/people/new", may=COMPANY, body={"username": "fresh"}),
    _page("/people/{person.viewer}", may=COMPANY, company_wide=True),
    _act("/people/{person.viewer}/invite", may=COMPANY, company_wide=True),
    _act("/people/{person.viewer}/activate", may=COMPANY, company_wide=True),
    _act("/people/{person.viewer}/deactivate", may=COMPANY, company_wide=True),
    _act("/people/{person.viewer}/unlock", may=COMPANY, company_wide=True),
    _act("/people/{person.viewer}/promote", may=COMPANY, company_wide=True),
    _page("/audit", may=TEAM_ADMINS),
    _page("/models"),
    _page("/models/import"),
    _page("/models/fetch"),
    _page("/models/{line}"),
    _page("/models/versions/{version}"),
    _page("/models/versions/{version}/files/config.json"),
    _act("/models/versions/{version.failed}/retry", may=ENGINEERS),
    _act("/models/versions/{version.failed}/cancel", may=ENGINEERS),
    _page("/models/versions/{version.unfit}/quantization"),
    _act("/models/versions/{version.unfit}/accept", may=ENGINEERS, body=_DECISION),
    _act("/models/versions/{version.unfit}/reject", may=ENGINEERS, body=_DECISION),
    _page("/datasets"),
    _page("/datasets/new"),
    _page("/datasets/versions/{dataset_version}"),
    _page("/datasets/versions/{dataset_version}/rows"),
    _page("/datasets/versions/{dataset_version}/lengths"),
    _page("/datasets/versions/{dataset_version}/files/train"),
    _page("/datasets/{dataset}"),
    _act("/datasets/check", quiet=True),
    _page("/datasets/versions/{dataset_version}/lineage"),
    _page("/jobs"),
    _page("/engines"),
    _page("/engines/vllm"),
    _page("/jobs/new"),
    _page("/jobs/new/finetune"),
    _page("/jobs/new/evaluate"),
    _page("/jobs/new/quantize"),
    _page("/jobs/new/script"),
    _page("/jobs/{job}"),
    _act("/jobs/{job}/cancel", may=ENGINEERS),
    _act("/jobs/{job.failed}/retry", may=ENGINEERS),
    _page("/jobs/{job}/curve/loss"),
    _act("/jobs/cancel", body={"uid": "{job}"}, quiet=True),
    _act("/jobs/filters", body={"name": "fresh", "query": "state=failed"}),
    _act("/jobs/filters/{filter}", may=OWNER, hidden=True, body={"act": "default"}),
    _page("/jobs/compare"),
    _page("/jobs/compare/curve"),
    _act("/jobs/new/script/check"),
    _act("/jobs/new/script/rendered"),
    _page("/jobs/{job.succeeded}/log"),
    _page("/jobs/{job.script}/files"),
    _page("/jobs/{job.script}/files/answer.txt"),
    _page("/pipelines"),
    _page("/pipelines/new"),
    _act("/pipelines/new/check"),
    _page("/pipelines/{pipeline}"),
    _act("/pipelines/{pipeline}/cancel", may=ENGINEERS),
    _act("/pipelines/{pipeline.failed}/retry", may=ENGINEERS),
    _act("/pipelines/{pipeline.held}/wave", may=ENGINEERS, body={"reason": "I looked"}),
    _page("/deployments"),
    _page("/deployments/new"),
    _act("/deployments/check"),
    _act("/deployments/fields", quiet=True),
    _page("/deployments/{deployment}"),
    _page("/deployments/{deployment}/charts/calls"),
    _page("/deployments/{deployment}/logs/{replica}"),
    _act("/deployments/{deployment}/revise/check"),
    _act("/deployments/{deployment}/revisions/1/roll-back", may=ENGINEERS),
    _act("/deployments/of/{version}", may=ENGINEERS),
    _page("/deployments/{deployment}/revise", may=ENGINEERS),
    _act("/deployments/{deployment}/revise", may=ENGINEERS, body={"model_version": "{version}"}),
    _act("/deployments/{deployment}/scale", may=ENGINEERS, body={"replicas": "2"}),
    _act("/deployments/{deployment}/stop", may=ENGINEERS),
    _act("/deployments/{deployment.stopped}/start", may=ENGINEERS),
    _act(
        "/deployments/{deployment.stopped}/delete",
        may=ENGINEERS,
        body={"name": "{deployment.stopped.name}"},
    ),
    _page("/playground"),
    _act("/playground/{deployment}/chat", may=ENGINEERS),
    _page("/keys"),
    _page("/keys/new"),
    _page("/keys/{key}"),
    _page("/keys/{key}/heard"),
    _act("/keys/{key}/rotate", may=ENGINEERS, body={"overlap": "1"}),
    _act("/keys/{key}/revoke", may=ENGINEERS),
    _page("/models/sizing"),
    _page("/models/sizing/curve.json"),
    _page("/models/catalog"),
    _page("/models/catalog/compare"),
    _page("/models/catalog/qwen2-7b-instruct"),
    _page("/fleet"),
    _page("/fleet/chips"),
    _page("/fleet/chips/nvidia-h800"),
    _page("/status", may=STAFF),
    _page("/storage"),
    _page("/storage/quotas/{team}", may=COMPANY),
    _act("/storage/quotas/{team}", may=COMPANY),
    _page("/storage/rules/{team}", may=TEAM_ADMINS),
    _act("/storage/rules/{team}", may=TEAM_ADMINS),
    _act("/storage/rules/{team}/forget", may=TEAM_ADMINS),
    _act("/storage/artifacts/{artifact}/pin", may=ENGINEERS),
    _act("/storage/left/checkpoints/{attempt.failed}", may=ENGINEERS),
    _page("/notifications"),
    _act("/notifications/read", body={"all": "1"}),
    _act("/notifications/undo"),
    _page("/notifications/bell", may=EVERYBODY),
    _page("/notifications/settings"),
    _act("/notifications/settings"),
    _act("/notifications/test"),
    _page("/notifications/{notification}", may=OWNER, hidden=True),
    _page("/teams/{team.slug}/webhooks", may=TEAM_ADMINS),
    _page("/teams/{team.slug}/webhooks/new", may=TEAM_ADMINS),
    _page("/webhooks/{webhook}", may=TEAM_ADMINS, hidden=True),
    _page("/webhooks/{webhook}/change", may=TEAM_ADMINS, hidden=True),
    _act("/webhooks/{webhook}/test", may=TEAM_ADMINS, hidden=True),
    _act("/webhooks/{webhook}/pause", may=TEAM_ADMINS, hidden=True),
    _act("/webhooks/{webhook}/resume", may=TEAM_ADMINS, hidden=True),
    _act("/webhooks/{webhook}/secret", may=TEAM_ADMINS, hidden=True),
    _act("/webhooks/{webhook}/delete", may=TEAM_ADMINS, hidden=True),
    _act("/webhooks/{webhook}/deliveries/{delivery}/again", may=TEAM_ADMINS, hidden=True),
    _page("/search?q=a"),
    _page("/design", may=STAFF, hidden=True),
    _page("/design/chart/marks", may=STAFF, hidden=True),
)

#: Addresses of which no row speaks, and who looks after them.
ELSEWHERE: Mapping[str, str] = {
    "/healthz": "for machines; says nothing of anybody",
    "/readyz": "for machines; tests/functional/operations",
    "/metrics": "for machines; tests/functional/operations",
    "/api/v1/storage/runs/{}": "no run has been; apps/models/selectors decides as for the list",
    "/internal/gateway/snapshot": "between our own processes; tests/functional/api/test_gateways.py",
    "/internal/gateway/usage": "between our own processes; tests/functional/api/test_gateways.py",
    "/api/v1/": "answers 404 to all; tests/functional/api/test_problems.py",
    "/api/v1/attempts/{}/progress": "the attempt's own token; tests/functional/api/test_attempts.py",
    "/api/v1/attempts/{}/files/{}": "the attempt's own token; tests/functional/api/test_attempts.py",
    "/api/v1/attempts/{}/manifest": "the attempt's own token; tests/functional/api/test_attempts.py",
    "/password/reset": "not there without a mail server; tests/functional/accounts",
    "/sign-on": "the provider's own tests",
    "/sign-on/callback": "the provider's own tests",
    "/sign-on/link/{}": "the provider's own tests",
    "/profile/sign-on/1/unlink": "the provider's own tests",
}
