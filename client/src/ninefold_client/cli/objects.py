"""``get``, ``describe``, ``watch``, ``quota``, ``apply`` and ``diff``."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from ninefold_client.apply import (
    KINDS,
    ApplyAction,
    Plan,
    apply_manifest,
    in_order,
    manifest_of_object,
)
from ninefold_client.cli.context import connected, error_lines
from ninefold_client.cli.output import (
    OutputFormat,
    print_error,
    print_fields,
    print_json,
    print_table,
    print_yaml,
)
from ninefold_client.client import Client
from ninefold_client.errors import ManifestError, NinefoldError
from ninefold_client.manifests import Manifest, parse_manifests, read_manifests
from ninefold_client.resources import Resource, find_object, find_team, resource_by_name

ResourceArgument = Annotated[
    str, typer.Argument(help="Plural, singular or short name, for example jobs, job or j.")
]
OutputOption = Annotated[OutputFormat, typer.Option("--output", "-o", help="Output format.")]
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
            rows = [
                row
                for row, _ in zip(client.list_all(kind.path, **query), range(limit), strict=False)
            ]
        if output is OutputFormat.YAML and kind.kind:
            detailed = (
                rows
                if name is not None
                else [client.get(f"{kind.path}/{row['uid']}") for row in rows]
            )
            print_yaml(
                [manifest_of_object(client, kind.kind, row).as_document() for row in detailed]
            )
            return
    if output is OutputFormat.TABLE:
        _print_rows(kind, rows)
        if len(rows) == limit and name is None:
            print_error(f"Only the first {limit} {kind.name} are shown; use --limit for more.")
    elif output is OutputFormat.NAME:
        for row in rows:
            print(f"{kind.singular}/{kind.name_of(row)}")
    elif output is OutputFormat.JSON:
        print_json(rows[0] if name is not None else rows)
    else:
        print_yaml(rows)


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
    print_table(headers, [[kind.name_of(row), *(column.value(row) for column in kind.columns), row["uid"]]
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
    every: Annotated[float, typer.Option(min=0.2, help="Seconds between two requests.")] = 2.0,
    count: Annotated[
        int | None, typer.Option(min=1, help="End after this number of lines.")
    ] = None,
) -> None:
    """Print a line for each object, and one whenever it changes. Ends with Ctrl-C, or when the job ends."""
    kind = resource_by_name(resource)
    seen: dict[str, list[object]] = {}
    printed = 0
    with connected(ctx) as client:
        uid = find_object(client, kind, name)["uid"] if name is not None else None
        while True:
            rows = [client.get(f"{kind.path}/{uid}")] if uid else list(client.list_all(kind.path))
            for row in reversed(rows):
                line = [column.value(row) for column in kind.columns]
                if seen.get(row["uid"]) != line:
                    seen[row["uid"]] = line
                    shown = "  ".join(
                        f"{column.header}={value}"
                        for column, value in zip(kind.columns, line, strict=True)
                    )
                    print(f"{time.strftime('%H:%M:%S')}  {kind.name_of(row)}  {shown}", flush=True)
                    printed += 1
                    if count is not None and printed >= count:
                        return
            if uid and rows[0].get("state") in ENDED:
                return
            time.sleep(every)


def quota(ctx: typer.Context, output: OutputOption = OutputFormat.TABLE) -> None:
    """Show used, guaranteed, borrowed and lent cards of each queue."""
    with connected(ctx) as client:
        queues = list(client.list_all("queues"))
    if output is OutputFormat.JSON:
        print_json(queues)
    elif output is OutputFormat.YAML:
        print_yaml(queues)
    elif output is OutputFormat.NAME:
        for queue in queues:
            print(f"queue/{queue['name']}")
    else:
        headers = [
            "QUEUE",
            "CHIP",
            "USED",
            "GUARANTEED",
            "BORROWED",
            "LENT",
            "CAP",
            "PENDING CLAIMS",
        ]
        numbers = ("used", "guaranteed", "borrowed", "lent", "cap")
        print_table(headers, [
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


def apply(
    ctx: typer.Context,
    filename: FileOption,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Change nothing; the server validates new jobs and queues."),
    ] = False,
) -> None:
    """Create the objects of the documents, or change those that differ. A second apply changes nothing."""
    plans, failed = _each_manifest(ctx, filename, dry_run=dry_run)
    suffix = " (dry run)" if dry_run else ""
    for plan in plans:
        print(f"{plan.manifest} {plan.action}{suffix}")
    if failed:
        raise typer.Exit(1)


def diff(
    ctx: typer.Context,
    filename: FileOption,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="Exit with 1 if there are differences.")
    ] = False,
) -> None:
    """Show what "apply" would create and change."""
    plans, failed = _each_manifest(ctx, filename, dry_run=True)
    differing = [plan for plan in plans if plan.action is not ApplyAction.UNCHANGED]
    for plan in differing:
        print(f"{plan.manifest} ({'new' if plan.action is ApplyAction.CREATED else 'changed'})")
        for one in plan.differences:
            if plan.action is ApplyAction.CONFIGURED:
                print(f"- {one.field}: {_flow(one.before)}")
            print(f"+ {one.field}: {_flow(one.after)}")
    if failed or (exit_code and differing):
        raise typer.Exit(1)


def _flow(value: Any) -> str:
    text = yaml.safe_dump(
        value, default_flow_style=True, allow_unicode=True, width=10_000, sort_keys=False
    )
    return text.removesuffix("\n").removesuffix("\n...")


def _each_manifest(ctx: typer.Context, filename: str, *, dry_run: bool) -> tuple[list[Plan], bool]:
    """Return the plans of all documents, and whether one failed; its error is printed and the others go on."""
    manifests = manifests_of(filename)
    plans, failed = [], False
    with connected(ctx) as client:
        for manifest in in_order(manifests):
            try:
                plans.append(apply_manifest(client, manifest, dry_run=dry_run))
            except NinefoldError as error:
                failed = True
                first, *more = error_lines(error)
                print_error("\n".join([f"{manifest}: {first}", *more]))
    return plans, failed


def manifests_of(filename: str) -> list[Manifest]:
    """Return the documents of the option ``-f``.

    :raises ManifestError: if there is no such file, or a document is invalid.
    """
    if filename == "-":
        return parse_manifests(sys.stdin.read(), source="standard input", kinds=KINDS)
    path = Path(filename)
    if not path.exists():
        raise ManifestError(
            f"there is no file or folder {filename!r}; give one that exists, or - for standard input"
        )
    return read_manifests(path, kinds=KINDS)
