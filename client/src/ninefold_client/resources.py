"""The resources of the command line: REST path, names, columns, and how an object is found by its name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ninefold_client.client import Client
from ninefold_client.errors import ManifestError, NotFound

Row = Mapping[str, Any]
_UID = re.compile(r"[0-9a-f]{32}")
_VERSION = re.compile(r"(.+)(?:@| v)([0-9]+)")
#: Stands for all teams without retention rules of their own.
EVERY_OTHER_TEAM = "others"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of a table."""

    header: str
    value: Callable[[Row], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """One kind of object of the REST API."""

    #: Plural; the other names are accepted on the command line as well.
    name: str
    singular: str
    short: str
    path: str
    columns: tuple[Column, ...]
    #: Query parameters that narrow a list down to a name; the exact name is compared afterwards.
    name_query: Callable[[str], Mapping[str, str]] = lambda _name: {}
    name_of: Callable[[Row], str] = lambda row: str(row["name"])
    #: Kind of the documents of ``apply``; empty if it has none.
    kind: str = ""
    #: Whether several objects may have the same name.
    repeats_names: bool = False
    #: What identifies an object in its path.
    uid_of: Callable[[Row], str] = lambda row: str(row["uid"])
    #: Whether a list has all fields; there is no operation for a single object then.
    is_complete: bool = False
    #: Reads all objects where the list is not one of pages.
    reader: Callable[[Client], Iterable[Row]] | None = None

    def rows(
        self, client: Client, **query: str | int | bool | list[str]
    ) -> Iterator[dict[str, Any]]:
        """Iterate over the objects of the list, newest first."""
        if self.reader is None:
            yield from client.list_all(self.path, **query)
        else:
            yield from (dict(row) for row in self.reader(client))


def field(header: str, path: str) -> Column:
    """Return the column of a field; ``team.name`` is the field ``name`` of the object ``team``."""
    return Column(header=header, value=lambda row: nested_value(row, path))


def nested_value(row: Any, path: str) -> Any:
    """Return the value at a dotted path; None if a part of it is null or missing."""
    for part in path.split("."):
        if not isinstance(row, Mapping):
            return None
        row = row.get(part)
    return row


def _cards(row: Row) -> str:
    used = sum(one["used"] for one in row["cards"])
    guaranteed = sum(one["guaranteed"] for one in row["cards"])
    return f"{used}/{guaranteed}"


def _newest_version(row: Row) -> object:
    return f"v{row['versions'][0]['number']}" if row["versions"] else None


def split_version(name: str) -> tuple[str, str]:
    """Return the name of a model or dataset and the number of its version, which may be empty."""
    found = _VERSION.fullmatch(name)
    return (found[1], found[2]) if found else (name, "")


def _affected_object(row: Row) -> str:
    return (
        f"{row['node']['name']}/{row['card']['name']}" if row["card"] else str(row["node"]["name"])
    )


_STATE, _TEAM, _CREATED = (
    field("STATE", "state"),
    field("TEAM", "team.name"),
    field("CREATED", "created_at"),
)

RESOURCES = (
    Resource(
        name="jobs",
        singular="job",
        short="j",
        path="jobs",
        kind="Job",
        repeats_names=True,
        name_query=lambda name: {"text": name},
        columns=(field("KIND", "kind"), _STATE, _TEAM, field("QUEUE", "queue"),
                 field("CREATED BY", "created_by"), _CREATED),
    ),
    Resource(
        name="deployments",
        singular="deployment",
        short="deploy",
        path="deployments",
        kind="Deployment",
        name_query=lambda name: {"text": name},
        columns=(
            _STATE,
            Column(header="READY", value=lambda row: f"{row['ready_replicas']}/{row['replica_count']}"),
            field("ROUTE", "route"), _TEAM, field("QUEUE", "queue"), _CREATED,
        ),
    ),
    Resource(
        name="models",
        singular="model",
        short="m",
        path="models",
        kind="Model",
        name_query=lambda name: {"name": name},
        columns=(_TEAM, field("DESCRIPTION", "description"), _CREATED),
    ),
    Resource(
        name="model-versions",
        singular="model-version",
        short="mv",
        path="model-versions",
        name_query=lambda name: {"model": split_version(name)[0]},
        columns=(_STATE, field("ARCHITECTURE", "architecture"), field("PARAMETERS", "parameters"),
                 field("SCHEME", "scheme"), _TEAM, _CREATED),
    ),
    Resource(
        name="datasets",
        singular="dataset",
        short="ds",
        path="datasets",
        kind="Dataset",
        name_query=lambda name: {"name": name},
        columns=(_TEAM, Column(header="VERSION", value=_newest_version), _CREATED),
    ),
    Resource(
        name="queues",
        singular="queue",
        short="q",
        path="queues",
        kind="Queue",
        columns=(_STATE, field("PARENT", "parent.name"), _TEAM, Column(header="USED/GUARANTEED", value=_cards),
                 field("RUNNING", "running"), field("PENDING", "waiting")),
    ),
    Resource(
        name="nodes",
        singular="node",
        short="no",
        path="nodes",
        columns=(field("CLUSTER", "cluster.name"), field("READY", "ready"), field("CORDONED", "cordoned"),
                 field("LAST SEEN", "last_seen_at")),
    ),
    Resource(
        name="cards",
        singular="card",
        short="ca",
        path="cards",
        name_of=lambda row: f"{row['node']['name']}/{row['index']}",
        columns=(field("CHIP", "chip"), _STATE, field("MEMORY", "memory"),
                 field("REASON", "state_reason.message")),
    ),
    Resource(
        name="alert-rules",
        singular="alert-rule",
        short="ar",
        path="alert-rules",
        kind="AlertRule",
        columns=(field("SEVERITY", "severity"), field("ENABLED", "enabled"), field("FIRING", "firing"),
                 field("TITLE", "title")),
    ),
    Resource(
        name="health-rules",
        singular="health-rule",
        short="hr",
        path="health-rules",
        kind="HealthRule",
        columns=(field("LEVEL", "level"), field("ENABLED", "enabled"), field("TITLE", "title")),
    ),
    Resource(
        name="priority-classes",
        singular="priority-class",
        short="pc",
        path="priority-classes",
        kind="PriorityClass",
        columns=(field("VALUE", "value"), field("DESCRIPTION", "description")),
    ),
    Resource(
        name="teams",
        singular="team",
        short="t",
        path="teams",
        kind="Team",
        name_of=lambda row: str(row["slug"]),
        columns=(field("NAME", "name"), Column(header="ROLES", value=lambda row: ", ".join(row["roles"]))),
    ),
    Resource(
        name="users",
        singular="user",
        short="u",
        path="users",
        name_query=lambda name: {"username": name},
        name_of=lambda row: str(row["username"]),
        columns=(field("ACTIVE", "active"), field("ADMINISTRATOR", "administrator"), field("E-MAIL", "email")),
    ),
    Resource(
        name="apply-sets",
        singular="apply-set",
        short="as",
        path="apply-sets",
        name_query=lambda name: {"name": name},
        columns=(_TEAM, Column(header="OBJECTS", value=lambda row: len(row["objects"])),
                 field("CHANGED", "changed_at")),
    ),
    Resource(
        name="company-roles",
        singular="company-role",
        short="cr",
        path="company-roles",
        kind="CompanyRoles",
        is_complete=True,
        name_of=lambda row: str(row["username"]),
        columns=(field("ROLES", "roles"),),
    ),
    Resource(
        name="pipelines",
        singular="pipeline",
        short="pl",
        path="pipelines",
        kind="Pipeline",
        repeats_names=True,
        name_query=lambda name: {"text": name},
        columns=(_STATE, _TEAM, field("QUEUE", "queue"), field("CREATED BY", "created_by"), _CREATED),
    ),
    Resource(
        name="weight-downloads",
        singular="weight-download",
        short="wd",
        path="weight-downloads",
        repeats_names=True,
        name_of=lambda row: f"{row['model_version']['name']} on {row['node']}",
        columns=(
            field("CLUSTER", "cluster.name"), _STATE,
            Column(header="DOWNLOADED", value=lambda row: f"{row['downloaded']}/{row['size']}"),
            _TEAM, field("CREATED BY", "created_by"), _CREATED,
        ),
    ),
    Resource(
        name="routes",
        singular="route",
        short="rt",
        path="routes",
        kind="Route",
        name_query=lambda name: {"name": name},
        columns=(
            _TEAM,
            Column(header="BACKENDS", value=lambda row: ", ".join(
                f"{one['deployment']['name']}={one['weight']}" for one in row["backends"])),
        ),
    ),
    Resource(
        name="gateway-keys",
        singular="gateway-key",
        short="key",
        path="keys",
        kind="GatewayKey",
        repeats_names=True,
        columns=(_TEAM, field("PREFIX", "prefix"), field("EXPIRES", "expires_at"), field("REVOKED", "revoked_at"),
                 field("CREATED BY", "created_by"), _CREATED),
    ),
    Resource(
        name="personal-tokens",
        singular="personal-token",
        short="token",
        path="tokens",
        kind="PersonalToken",
        is_complete=True,
        repeats_names=True,
        columns=(field("SCOPES", "scopes"), field("TEAM", "team_name"), field("EXPIRES", "expires_at"),
                 field("LAST USED", "last_used_at"), field("REVOKED", "revoked_at")),
    ),
    Resource(
        name="clusters",
        singular="cluster",
        short="cl",
        path="clusters",
        kind="Cluster",
        columns=(field("KIND", "kind"), field("BINDING", "binding"), field("NODES", "nodes"),
                 field("CARDS", "cards"), field("ERROR", "error.message")),
    ),
    Resource(
        name="metric-sources",
        singular="metric-source",
        short="ms",
        path="telemetry-sources",
        kind="MetricSource",
        columns=(field("CLUSTER", "cluster.name"), field("KIND", "kind"), field("ENABLED", "enabled"),
                 field("LAST READ", "read_at"), field("ERROR", "error.message")),
    ),
    Resource(
        name="alert-receivers",
        singular="alert-receiver",
        short="are",
        path="alert-receivers",
        kind="AlertReceiver",
        columns=(field("KIND", "kind"), field("ACTIVE", "active"), field("ERROR", "last_error.message")),
    ),
    Resource(
        name="alert-routes",
        singular="alert-route",
        short="aro",
        path="alert-routes",
        kind="AlertRoute",
        columns=(field("SEVERITY", "severity"), field("MATCHERS", "matchers"), field("ENABLED", "enabled"),
                 field("RECEIVERS", "receivers")),
    ),
    Resource(
        name="silences",
        singular="silence",
        short="si",
        path="alert-silences",
        kind="Silence",
        repeats_names=True,
        columns=(field("MATCHERS", "matchers"), field("STARTED", "began_at"), field("ENDS", "ends_at"),
                 field("CREATED BY", "created_by_name"), field("REASON", "reason")),
    ),
    Resource(
        name="health-policies",
        singular="health-policy",
        short="hp",
        path="health-policy",
        kind="HealthPolicy",
        is_complete=True,
        name_of=lambda _row: "default",
        uid_of=lambda _row: "default",
        reader=lambda client: [client.get("health-policy")],
        columns=(field("AUTOMATIC", "automatic"), field("CHANGED", "changed_at"), field("BY", "changed_by_name")),
    ),
    Resource(
        name="webhooks",
        singular="webhook",
        short="wh",
        path="webhooks",
        kind="Webhook",
        columns=(_TEAM, field("URL", "url"), field("ACTIVE", "active"), field("ERROR", "last_error.message")),
    ),
    Resource(
        name="rollouts",
        singular="rollout",
        short="ro",
        path="rollouts",
        kind="MaintenanceRollout",
        repeats_names=True,
        columns=(_STATE, field("CLUSTER", "cluster.name"), field("CREATED BY", "created_by"), _CREATED),
    ),
    Resource(
        name="storage-quotas",
        singular="storage-quota",
        short="sq",
        path="storage/quotas",
        kind="StorageQuota",
        is_complete=True,
        name_of=lambda row: str(row["team"]["name"]),
        uid_of=lambda row: str(row["team"]["uid"]),
        reader=lambda client: client.get("storage")["teams"],
        columns=(field("USED", "used"), field("LIMIT", "limit"), field("LEVEL", "level")),
    ),
    Resource(
        name="retention-rules",
        singular="retention-rule",
        short="rr",
        path="storage/rules",
        kind="RetentionRules",
        is_complete=True,
        name_of=lambda row: str(row["team"]["name"]) if row["team"] else EVERY_OTHER_TEAM,
        uid_of=lambda row: str(row["team"]["uid"]) if row["team"] else EVERY_OTHER_TEAM,
        reader=lambda client: client.get("storage/rules"),
        columns=(field("ENABLED", "rules.enabled"), field("VERSIONS", "rules.keep_versions"),
                 field("CHECKPOINT DAYS", "rules.checkpoint_days"), field("FAILED DAYS", "rules.failed_days"),
                 field("LOG DAYS", "rules.log_days")),
    ),
    Resource(
        name="card-rates",
        singular="card-rate",
        short="rate",
        path="usage/rates",
        kind="CardRate",
        is_complete=True,
        name_of=lambda row: str(row["chip"]),
        uid_of=lambda row: str(row["chip"]),
        reader=lambda client: client.get("usage/rates"),
        columns=(field("PER HOUR", "per_hour"), field("CURRENCY", "currency")),
    ),
    Resource(
        name="dataset-versions",
        singular="dataset-version",
        short="dv",
        path="dataset-versions",
        columns=(field("ROWS", "row_count"), field("SOURCE", "source_name"), _TEAM,
                 field("CREATED BY", "created_by"), _CREATED),
    ),
    Resource(
        name="evaluations",
        singular="evaluation",
        short="ev",
        path="evaluations",
        repeats_names=True,
        name_of=lambda row: f"{row['model_version']['name']} on {row['dataset_version']['name']}",
        columns=(
            field("SPLIT", "split"),
            Column(header="METRICS", value=lambda row: ", ".join(
                f"{name}={value:g}" for name, value in row["metrics"].items() if isinstance(value, int | float))),
            _CREATED,
        ),
    ),
    Resource(
        name="claims",
        singular="claim",
        short="cm",
        path="claims",
        repeats_names=True,
        name_of=lambda row: f"{row['owner_kind']}/{row['owner_uid']}",
        columns=(_STATE, _TEAM, field("QUEUE", "queue.name"), field("CARDS", "card_count"), field("CHIP", "chip"),
                 field("EXPLANATION", "explanation.message"), _CREATED),
    ),
    Resource(
        name="alerts",
        singular="alert",
        short="al",
        path="alerts",
        repeats_names=True,
        name_of=lambda row: str(row["title"]),
        columns=(field("SEVERITY", "severity"), field("COUNT", "count"), field("SILENCED", "silenced"),
                 field("STARTED", "began_at"), field("ENDED", "ended_at")),
    ),
    Resource(
        name="faults",
        singular="fault",
        short="fa",
        path="faults",
        repeats_names=True,
        name_of=_affected_object,
        columns=(field("CODE", "code"), field("LEVEL", "level"), field("CAUSE", "cause"), field("COUNT", "count"),
                 field("STARTED", "began_at"), field("ENDED", "ended_at"),
                 field("ACKNOWLEDGED", "acknowledged_at")),
    ),
    Resource(
        name="isolations",
        singular="isolation",
        short="iso",
        path="isolations",
        repeats_names=True,
        name_of=_affected_object,
        columns=(_STATE, field("REASON", "reason.message"), field("STARTED", "began_at"),
                 field("ENDED", "ended_at")),
    ),
    Resource(
        name="node-tokens",
        singular="node-token",
        short="nt",
        path="node-tokens",
        repeats_names=True,
        name_of=lambda row: str(row["node"]["name"]),
        columns=(field("CREATED BY", "created_by_name"), _CREATED, field("LAST USED", "used_at"),
                 field("REVOKED", "revoked_at")),
    ),
    Resource(
        name="artifacts",
        singular="artifact",
        short="art",
        path="storage/artifacts",
        repeats_names=True,
        columns=(field("KIND", "kind"), _TEAM, field("SIZE", "size"), field("PINNED", "pinned_at"), _CREATED,
                 field("DELETED", "deleted_at")),
    ),
    Resource(
        name="audit-events",
        singular="audit-event",
        short="au",
        path="audit",
        is_complete=True,
        repeats_names=True,
        name_of=lambda row: str(row["action"]),
        uid_of=lambda row: str(row["id"]),
        columns=(field("AT", "at"), field("ACTOR", "actor"), field("TEAM", "team_name"),
                 field("OBJECT", "object_name")),
    ),
    Resource(
        name="catalog",
        singular="catalog-model",
        short="cat",
        path="catalog",
        reader=lambda client: client.get("catalog"),
        name_of=lambda row: str(row["key"]),
        uid_of=lambda row: str(row["key"]),
        columns=(field("TITLE", "title"), field("MODALITY", "modality"), field("PARAMETERS", "parameters")),
    ),
    Resource(
        name="chips",
        singular="chip",
        short="ch",
        path="chips",
        reader=lambda client: client.get("chips"),
        uid_of=lambda row: str(row["name"]),
        columns=(field("TITLE", "title"), field("VENDOR", "vendor"), field("MEMORY", "memory"),
                 field("CARDS", "cards"), field("USABLE", "usable_cards")),
    ),
    Resource(
        name="engines",
        singular="engine",
        short="eng",
        path="engines",
        reader=lambda client: client.get("engines"),
        is_complete=True,
        uid_of=lambda row: str(row["name"]),
        columns=(field("TITLE", "title"), field("VERSIONS", "versions"),
                 Column(header="TASKS", value=lambda row: ", ".join(row["tasks"]))),
    ),
)  # fmt: skip

_BY_NAME = {name: one for one in RESOURCES for name in (one.name, one.singular, one.short)}
JOBS, DEPLOYMENTS = _BY_NAME["jobs"], _BY_NAME["deployments"]
MODEL_VERSIONS, DATASETS = _BY_NAME["model-versions"], _BY_NAME["datasets"]
RESOURCE_OF_KIND = {one.kind: one for one in RESOURCES if one.kind}
USERS, PIPELINES = _BY_NAME["users"], _BY_NAME["pipelines"]


def resource_by_name(name: str) -> Resource:
    """Return the resource of a plural, singular or short name, or of a kind of documents.

    :raises NotFound: naming all resources.
    """
    found = _BY_NAME.get(name.lower()) or RESOURCE_OF_KIND.get(name)
    if found is None:
        known = ", ".join(f"{one.name} ({one.short})" for one in RESOURCES)
        raise NotFound(f"there is no resource {name!r}; resources: {known}")
    return found


def split_target(text: str, *, default: Resource) -> tuple[Resource, str]:
    """Return resource and name of a text like ``deployment/parcels``, or the default and the text."""
    resource, _, name = text.partition("/")
    found = _BY_NAME.get(resource.lower())
    return (found, name) if found and name else (default, text)


def objects_named(client: Client, resource: Resource, name: str) -> Iterator[dict[str, Any]]:
    """Iterate over the objects of that name, newest first."""
    for row in resource.rows(client, **resource.name_query(name)):
        if resource.name_of(row) == name:
            yield row


def detailed(client: Client, resource: Resource, row: Row) -> dict[str, Any]:
    """Return the object of a row of a list with all of its fields."""
    if resource.is_complete:
        return dict(row)
    found: dict[str, Any] = client.get(f"{resource.path}/{resource.uid_of(row)}")
    return found


def find_object(
    client: Client,
    resource: Resource,
    name: str,
    *,
    unique: bool = False,
    is_current: Callable[[Row], bool] = lambda _row: True,
) -> dict[str, Any]:
    """Return the details of the newest object with that name or uid.

    :param unique: refuse a name that several objects have, of which those are counted that are current.
    :raises NotFound: if there is none, or several and ``unique``.
    """
    if _UID.fullmatch(name) and not resource.is_complete:
        row: dict[str, Any] = client.get(f"{resource.path}/{name}")
        return row
    found = []
    if _UID.fullmatch(name):
        found = [row for row in resource.rows(client) if resource.uid_of(row) == name][:1]
    else:
        for row in objects_named(client, resource, name):
            found.append(row)
            if not unique:
                break
    if not found:
        raise NotFound(
            f"no {resource.singular} is named {name!r}. See: ninefold get {resource.name}",
            name=name,
        )
    if len(found) > 1:
        found = [row for row in found if is_current(row)] or found[:1]
    if len(found) > 1:
        uids = ", ".join(resource.uid_of(row) for row in found[:5])
        raise NotFound(
            f"{len(found)} {resource.name} are named {name!r}; use the uid of one of them: {uids}"
        )
    return detailed(client, resource, found[0])


def find_team(client: Client, team: str) -> str:
    """Return the uid of a team by its uid, slug or name.

    :raises NotFound: naming the teams of the user.
    """
    teams = list(client.list_all("teams"))
    for row in teams:
        if team in {row["uid"], row["slug"], row["name"]}:
            return str(row["uid"])
    known = ", ".join(row["slug"] for row in teams) or "none"
    raise NotFound(f"no team {team!r} is visible to you; your teams: {known}", name=team)


def find_user(client: Client, username: str) -> str:
    """Return the uid of a user by the name.

    :raises NotFound: if there is none.
    """
    return str(find_object(client, USERS, username)["uid"])


def find_model_version(
    client: Client, name: str, *, team: str = "", state: str = "ready"
) -> dict[str, Any]:
    """Return a model version by its uid, as ``model@2`` or ``model v2``, or the newest ready one of ``model``.

    :param name: ``team/model@2`` for the model of one team.
    :param team: of several teams with a model of that name, the one whose model is meant.
    :param state: the newest version of ``model`` in this state instead.
    :raises NotFound: if there is none.
    :raises ManifestError: if several teams have one and none is that team.
    """
    if _UID.fullmatch(name):
        version: dict[str, Any] = client.get(f"model-versions/{name}")
        return version
    owner, model, number = _split_reference(name)
    in_state = {} if number else {"state": state}
    rows = [
        row
        for row in client.list_all("model-versions", model=model, **in_state)
        if not number or row["name"] == f"{model} v{number}"
    ]
    found = _rows_of_one_team(client, rows, name, owner=owner, team=team)
    if found:
        return found[0]
    raise NotFound(
        f"no {f'{state} ' if in_state else ''}version of a model is {name!r}. See: ninefold get model-versions",
        name=model,
    )


def _split_reference(name: str) -> tuple[str, str, str]:
    """Return team, name and number of ``team/model@2``; empty without."""
    owner, _, rest = name.rpartition("/")
    return owner, *split_version(rest)


def _rows_of_one_team(
    client: Client, rows: list[dict[str, Any]], name: str, *, owner: str, team: str
) -> list[dict[str, Any]]:
    """Return the rows of the team that a reference names, or of the only one that has any.

    :raises ManifestError: if that is ambiguous.
    """

    def of(wanted: str) -> list[dict[str, Any]]:
        uid = find_team(client, wanted)
        return [row for row in rows if row["team"] and row["team"]["uid"] == uid]

    if owner:
        return of(owner)
    teams = {row["team"]["uid"] if row["team"] else None: row["team"] for row in rows}
    if len(teams) <= 1:
        return rows
    if team and (own := of(team)):
        return own
    names = ", ".join(sorted(each["name"] if each else "all teams" for each in teams.values()))
    raise ManifestError(
        f"{name!r} is ambiguous: {names} have one; write TEAM/{name}, with the slug of the team, or the uid"
    )


def find_job_output(client: Client, given: Row, *, field: str) -> dict[str, Any]:
    """Return the model version that a job created; ``given`` is ``{job: name}``.

    :param field: the field of the document, for messages.
    :raises ManifestError: if ``given`` is something else, or the job failed or has no output.
    :raises NotFound: if there is no job, or it has not ended yet.
    """
    if set(given) != {"job"}:
        raise ManifestError(
            f"{field} is {dict(given)!r}; it must be a model version, for example parser@2, or "
            "{job: NAME} for the output of a job"
        )
    job = find_object(client, JOBS, str(given["job"]))
    for row in client.list_all("model-versions", job=job["uid"], state="ready"):
        return row
    if job["state"] in {"failed", "cancelled"}:
        raise ManifestError(
            f"{field}: job {job['name']} is {job['state']} and created no model version; fix and retry it"
        )
    if job["state"] == "succeeded":
        raise ManifestError(
            f"{field}: job {job['name']} has succeeded and has no ready model version; give it an output_name"
        )
    raise NotFound(
        f"{field}: job {job['name']} is {job['state']} and has no model version yet. Wait for it with: "
        "ninefold apply --wait",
        name=job["name"],
    )


def find_dataset_version(client: Client, name: str, *, team: str = "") -> dict[str, Any]:
    """Return a dataset version by its uid, as ``dataset@2`` or ``dataset v2``, or the newest one of ``dataset``.

    Several teams with a dataset of that name are told apart as in :func:`find_model_version`.

    :raises NotFound: if there is none.
    :raises ManifestError: if the name is ambiguous.
    """
    if _UID.fullmatch(name):
        version: dict[str, Any] = client.get(f"dataset-versions/{name}")
        return version
    owner, dataset, number = _split_reference(name)
    rows = list(objects_named(client, DATASETS, dataset))
    for row in _rows_of_one_team(client, rows, name, owner=owner, team=team):
        for brief in row["versions"]:
            if not number or str(brief["number"]) == number:
                return {**brief, "name": f"{dataset} v{brief['number']}"}
    raise NotFound(f"no version of a dataset is {name!r}. See: ninefold get datasets", name=dataset)
