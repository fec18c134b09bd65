"""``get``, ``describe``, ``watch`` and ``quota``."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from ninefold_client.apply import KINDS, manifests_of_objects
from ninefold_client.cli.context import connected
from ninefold_client.cli.output import (
    OutputFormat,
    OutputOption,
    print_error,
    print_fields,
    print_objects,
    print_table,
    print_yaml,
)
from ninefold_client.client import Client
from ninefold_client.errors import ManifestError
from ninefold_client.manifests import Manifest, parse_manifests, read_manifests
from ninefold_client.resources import (
    RESOURCE_OF_KIND,
    RESOURCES,
    Resource,
    find_object,
    find_team,
    resource_by_name,
)
from ninefold_client.watch import WatchUnsupported
from ninefold_client.watch import watch as watch_events


def _complete_resource(incomplete: str) -> list[tuple[str, str]]:
    """Return plural names with their short ones, for the completion of shells."""
    return [(one.name, f"or {one.short}") for one in RESOURCES if one.name.startswith(incomplete)]


def complete_deletable_resource(incomplete: str) -> list[tuple[str, str]]:
    """Return those whose objects ``delete`` deletes."""
    deletable = {
        RESOURCE_OF_KIND[kind.name].name for kind in KINDS.values() if not kind.not_deleted
    }
    return [one for one in _complete_resource(incomplete) if one[0] in deletable]


RESOURCE_HELP = "Plural, singular or short name, for example jobs, job or j."
ResourceArgument = Annotated[
    str, typer.Argument(help=RESOURCE_HELP, autocompletion=_complete_resource)
]
_FILTERED_BY_TEAM = frozenset({"jobs", "deployments", "models", "model-versions", "datasets"})
_FILTERED_BY_STATE = frozenset({"jobs", "deployments", "model-versions", "cards"})
ENDED = frozenset({"succeeded", "failed", "cancelled"})


def get(
    ctx: typer.Context,
    resource: ResourceArgument,
    name: Annotated[str | None, typer.Argument(help="Name or uid. Default: all objects.")] = None,
    output: OutputOption = OutputFormat.TABLE,
    team: Annotated[str | None, typer.Option(help="Only objects of this team.")] = None,
    state: Annotated[str | None, typer.Option(help="Only objects in this state.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of objects.")] = 500,
) -> None:
    """List objects, or one. -o yaml prints what "apply" reads, where the resource has documents."""
    kind = resource_by_name(resource)
    with connected(ctx) as client:
        if name is not None:
            rows = [find_object(client, kind, name)]
        else:
            query = _filters(client, kind, team=team, state=state)
            rows = [row for row, _ in zip(kind.rows(client, **query), range(limit), strict=False)]
        if output is OutputFormat.YAML and kind.kind:
            documents = manifests_of_objects(client, kind.kind, rows)
            print_yaml([one.as_document() for one in documents])
            if len(documents) < len(rows):
                print_error(
                    f"{len(rows) - len(documents)} of {len(rows)} {kind.name} are left out: they are revoked, "
                    "or a newer one has their name. -o json shows them."
                )
            return
    print_objects(
        output,
        rows[0] if name is not None else rows,
        names=[f"{kind.singular}/{kind.name_of(row)}" for row in rows],
        table=lambda: _print_rows(kind, rows),
    )
    if output is OutputFormat.TABLE and len(rows) == limit and name is None:
        print_error(f"Only the first {limit} {kind.name} are shown; use --limit for more.")


def _filters(
    client: Client, kind: Resource, *, team: str | None, state: str | None
) -> dict[str, str]:
    query = {}
    for option, value, supported in (
        ("team", team, _FILTERED_BY_TEAM),
        ("state", state, _FILTERED_BY_STATE),
    ):
        if value is None:
            continue
        if kind.name not in supported:
            raise typer.BadParameter(
                f"{kind.name} cannot be filtered by {option}; supported: {', '.join(sorted(supported))}"
            )
        query[option] = find_team(client, value) if option == "team" else value
    return query


def _print_rows(kind: Resource, rows: list[dict[str, Any]]) -> None:
    if not rows:
        print_error(f"No {kind.name}.")
        return
    headers = ["NAME", *(column.header for column in kind.columns), "UID"]
    print_table(headers, [[kind.name_of(row), *(column.value(row) for column in kind.columns), kind.uid_of(row)]
                          for row in rows])  # fmt: skip


def describe(
    ctx: typer.Context,
    resource: ResourceArgument,
    name: Annotated[str, typer.Argument(help="Name or uid.")],
) -> None:
    """Show all fields of an object."""
    with connected(ctx) as client:
        print_fields(find_object(client, resource_by_name(resource), name))


def watch(
    ctx: typer.Context,
    resource: ResourceArgument,
    name: Annotated[str | None, typer.Argument(help="Name or uid. Default: all objects.")] = None,
    every: Annotated[
        float,
        typer.Option(min=0.2, help="Seconds between two requests to a server without watches."),
    ] = 2.0,
    count: Annotated[
        int | None, typer.Option(min=1, help="End after this number of lines.")
    ] = None,
) -> None:
    """Print a line for each object, and one whenever it changes. Ends with Ctrl-C, or when the job ends."""
    kind = resource_by_name(resource)
    seen: dict[str, str] = {}
    printed = 0
    with connected(ctx) as client:
        found = find_object(client, kind, name) if name is not None else None
        for uid, row in watched_rows(client, kind, found, every=every):
            line = _watched_line(kind, row)
            if seen.get(uid) != line:
                seen[uid] = line
                print(f"{time.strftime('%H:%M:%S')}  {line}", flush=True)
                printed += 1
                if count is not None and printed >= count:
                    return
            if found and (row.get("state") in ENDED or row.get("deleted")):
                return


def _watched_line(kind: Resource, row: Mapping[str, Any]) -> str:
    if row.get("deleted"):
        return f"{row['name']}  deleted"
    values = (f"{column.header}={column.value(row)}" for column in kind.columns)
    return "  ".join([kind.name_of(row), *values])


def watched_rows(
    client: Client, kind: Resource, found: Mapping[str, Any] | None, *, every: float
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Iterate over uid and fields of the objects, then of each that changes; ``found``: only of that one.

    An object that was deleted has the fields name and ``deleted``.
    """
    query = kind.name_query(kind.name_of(found)) if found else {}
    names: dict[str, str] = {}
    try:
        for event in watch_events(client, kind.path, **query):
            row = event.object
            if event.type == "BOOKMARK":
                continue
            uid = str(row["uid"]) if event.type == "DELETED" else kind.uid_of(row)
            if found and uid != kind.uid_of(found):
                continue
            if event.type != "DELETED":
                names[uid] = kind.name_of(row)
                yield uid, row
            elif uid in names:
                yield uid, {"name": names.pop(uid), "deleted": True}
    except WatchUnsupported:
        pass
    while True:
        rows = [find_object(client, kind, kind.uid_of(found))] if found else list(kind.rows(client))
        yield from ((kind.uid_of(row), row) for row in reversed(rows))
        time.sleep(every)


def quota(ctx: typer.Context, output: OutputOption = OutputFormat.TABLE) -> None:
    """Show used, guaranteed, borrowed and lent cards of each queue."""
    with connected(ctx) as client:
        queues = list(client.list_all("queues"))
    print_objects(
        output,
        queues,
        names=[f"queue/{queue['name']}" for queue in queues],
        table=lambda: _print_quota(queues),
    )


def _print_quota(queues: list[dict[str, Any]]) -> None:
    numbers = ("used", "guaranteed", "borrowed", "lent", "cap")
    print_table(["QUEUE", "CHIP", *(name.upper() for name in numbers), "PENDING CLAIMS"], [
        [queue["name"], cards["chip"] or "all", *(cards[name] for name in numbers), queue["waiting"]]
        for queue in queues
        for cards in queue["cards"] or [dict.fromkeys(("chip", *numbers))]
    ])  # fmt: skip


FileOption = Annotated[
    str,
    typer.Option(
        "--filename",
        "-f",
        help="A YAML or JSON file, a folder of such files, or - for standard input.",
    ),
]


def manifests_of(filename: str) -> list[Manifest]:
    """Return the documents of the option ``-f``; none if the file or standard input is empty.

    :raises ManifestError: if there is no such file, a document is invalid, or a folder contains none.
    """
    if filename == "-":
        return parse_manifests(sys.stdin.read(), source="standard input", kinds=KINDS)
    path = Path(filename)
    if not path.exists():
        raise ManifestError(
            f"there is no file or folder {filename!r}; give one that exists, or - for standard input"
        )
    return read_manifests(path, kinds=KINDS)
