"""The resources of the command line: REST path, names, columns, and how an object is found by its name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ninefold_client.client import Client
from ninefold_client.errors import NotFound

Row = Mapping[str, Any]
_UID = re.compile(r"[0-9a-f]{32}")
_VERSION = re.compile(r"(.+)(?:@| v)([0-9]+)")


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


def _split_version(name: str) -> tuple[str, str]:
    """Return the name of a model or dataset and the number of its version, which may be empty."""
    found = _VERSION.fullmatch(name)
    return (found[1], found[2]) if found else (name, "")


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
        name_query=lambda name: {"name": name},
        columns=(_TEAM, field("DESCRIPTION", "description"), _CREATED),
    ),
    Resource(
        name="model-versions",
        singular="model-version",
        short="mv",
        path="model-versions",
        name_query=lambda name: {"model": _split_version(name)[0]},
        columns=(_STATE, field("ARCHITECTURE", "architecture"), field("PARAMETERS", "parameters"),
                 field("SCHEME", "scheme"), _TEAM, _CREATED),
    ),
    Resource(
        name="datasets",
        singular="dataset",
        short="ds",
        path="datasets",
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
        name_of=lambda row: str(row["slug"]),
        columns=(field("NAME", "name"), Column(header="ROLES", value=lambda row: ", ".join(row["roles"]))),
    ),
)  # fmt: skip

_BY_NAME = {name: one for one in RESOURCES for name in (one.name, one.singular, one.short)}
JOBS, DEPLOYMENTS = _BY_NAME["jobs"], _BY_NAME["deployments"]
MODEL_VERSIONS, DATASETS = _BY_NAME["model-versions"], _BY_NAME["datasets"]
RESOURCE_OF_KIND = {one.kind: one for one in RESOURCES if one.kind}


def resource_by_name(name: str) -> Resource:
    """Return the resource of a plural, singular or short name.

    :raises NotFound: naming all resources.
    """
    found = _BY_NAME.get(name.lower())
    if found is None:
        known = ", ".join(f"{one.name} ({one.short})" for one in RESOURCES)
        raise NotFound(f"there is no resource {name!r}; resources: {known}")
    return found


def objects_named(client: Client, resource: Resource, name: str) -> Iterator[dict[str, Any]]:
    """Iterate over the objects of that name, newest first."""
    for row in client.list_all(resource.path, **resource.name_query(name)):
        if resource.name_of(row) == name:
            yield row


def find_object(
    client: Client, resource: Resource, name: str, *, unique: bool = False
) -> dict[str, Any]:
    """Return the details of the newest object with that name or uid.

    :param unique: refuse a name that several objects have.
    :raises NotFound: if there is none, or several and ``unique``.
    """
    if _UID.fullmatch(name):
        uid = name
    else:
        found = []
        for row in objects_named(client, resource, name):
            found.append(row)
            if not unique:
                break
        if not found:
            raise NotFound(
                f"no {resource.singular} is named {name!r}. See: ninefold get {resource.name}"
            )
        if len(found) > 1:
            uids = ", ".join(row["uid"] for row in found[:5])
            raise NotFound(
                f"{len(found)} {resource.name} are named {name!r}; use the uid of one of them: {uids}"
            )
        uid = found[0]["uid"]
    detailed: dict[str, Any] = client.get(f"{resource.path}/{uid}")
    return detailed


def find_team(client: Client, team: str) -> str:
    """Return the uid of a team by its uid, slug or name.

    :raises NotFound: naming the teams of the user.
    """
    teams = list(client.list_all("teams"))
    for row in teams:
        if team in {row["uid"], row["slug"], row["name"]}:
            return str(row["uid"])
    known = ", ".join(row["slug"] for row in teams) or "none"
    raise NotFound(f"no team {team!r} is visible to you; your teams: {known}")


def find_model_version(client: Client, name: str) -> dict[str, Any]:
    """Return a model version by its uid, as ``model@2`` or ``model v2``, or the newest ready one of ``model``.

    :raises NotFound: if there is none.
    """
    if _UID.fullmatch(name):
        version: dict[str, Any] = client.get(f"model-versions/{name}")
        return version
    model, number = _split_version(name)
    ready = {} if number else {"state": "ready"}
    for row in client.list_all("model-versions", model=model, **ready):
        if not number or row["name"] == f"{model} v{number}":
            return row
    raise NotFound(
        f"no {'ready ' if ready else ''}version of a model is {name!r}. See: ninefold get model-versions"
    )


def find_dataset_version(client: Client, name: str) -> dict[str, Any]:
    """Return a dataset version by its uid, as ``dataset@2`` or ``dataset v2``, or the newest one of ``dataset``.

    :raises NotFound: if there is none.
    """
    if _UID.fullmatch(name):
        version: dict[str, Any] = client.get(f"dataset-versions/{name}")
        return version
    dataset, number = _split_version(name)
    for row in objects_named(client, DATASETS, dataset):
        for brief in row["versions"]:
            if not number or str(brief["number"]) == number:
                return {**brief, "name": f"{dataset} v{brief['number']}"}
    raise NotFound(f"no version of a dataset is {name!r}. See: ninefold get datasets")
