"""``rollout``: status, history, pause, resume and undo of the rollout of a deployment."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from ninefold_client.cli.context import ErrorReportingGroup, connected
from ninefold_client.cli.output import OutputFormat, OutputOption, print_objects, print_table
from ninefold_client.client import Client
from ninefold_client.errors import NinefoldError
from ninefold_client.resources import DEPLOYMENTS, find_object

rollout = typer.Typer(
    cls=ErrorReportingGroup,
    no_args_is_help=True,
    help="Show, pause, resume and undo the rollout of a deployment. "
    "Rollouts of maintenance are objects: ninefold get rollouts.",
)

DeploymentArgument = Annotated[str, typer.Argument(help="Name or uid of the deployment.")]


@rollout.command()
def status(
    ctx: typer.Context,
    name: DeploymentArgument,
    watch: Annotated[
        bool, typer.Option("--watch/--no-watch", help="Wait until the rollout has ended.")
    ] = True,
    timeout: Annotated[float, typer.Option(min=1, help="Seconds to wait.")] = 3600,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Show the rollout, and wait until it is complete. Exit code 1 if it has failed or is paused."""
    with connected(ctx) as client:
        row = _find(client, name)
        if watch and output is OutputFormat.TABLE:
            phase = _watch(client, row, timeout=timeout)
        else:
            print_objects(output, row["rollout"], table=lambda: print(_status_line(row)))
            phase = row["rollout"]["phase"]
    if output is OutputFormat.TABLE and phase in {"failed", "paused"}:
        raise typer.Exit(1)


def _watch(client: Client, row: Mapping[str, Any], *, timeout: float) -> str:
    """Print each change until the rollout has ended or is paused; return its phase.

    :raises NinefoldError: if it is neither in time.
    """
    began, last = time.monotonic(), ""
    while True:
        if (line := _status_line(row)) != last:
            print(line, flush=True)
            last = line
        if row["rollout"]["phase"] != "progressing" or row["state"] in {"stopping", "stopped"}:
            return str(row["rollout"]["phase"])
        if time.monotonic() - began > timeout:
            raise NinefoldError(
                f"the rollout of {row['name']} has not ended after {timeout:g} seconds; wait longer with --timeout"
            )
        time.sleep(1)
        row = client.get(f"deployments/{row['uid']}")


def _status_line(row: Mapping[str, Any]) -> str:
    name, state, at = row["name"], row["state"], row["rollout"]
    if state in {"stopping", "stopped"}:
        return f"deployment {name} is {state}"
    if at["phase"] == "complete":
        return f"deployment {name} successfully rolled out: revision {at['revision']}"
    if at["phase"] == "failed":
        newest = row["revisions"][0]
        reason = (newest["failure_reason"] or {}).get("message", "")
        return f"revision {newest['number']} of {name} failed: {reason}; revision {at['revision']} serves"
    counts = (
        f"{at['updated_replicas']} of {at['replicas']} replicas are of revision {at['revision']}, "
        f"{at['updated_ready_replicas']} of them ready; {at['old_replicas']} old replicas are left"
    )
    if at["phase"] == "paused":
        return f"the rollout of {name} is paused: {counts}. Continue it with: ninefold rollout resume {name}"
    return f"waiting for the rollout of {name}: {counts}"


@rollout.command()
def history(
    ctx: typer.Context,
    name: DeploymentArgument,
    revision: Annotated[
        int | None, typer.Option(min=1, help="Show all fields of this revision.")
    ] = None,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """List the revisions, the newest first."""
    with connected(ctx) as client:
        row = _find(client, name)
    revisions = row["revisions"]
    if revision is not None:
        revisions = [one for one in revisions if one["number"] == revision]
        if not revisions:
            newest = row["revisions"][0]["number"]
            raise NinefoldError(
                f"deployment {row['name']} has no revision {revision}; the newest is revision {newest}"
            )
        output = OutputFormat.YAML if output is OutputFormat.TABLE else output
    print_objects(output, revisions, table=lambda: _print_history(row, revisions))


def _print_history(row: Mapping[str, Any], revisions: list[Mapping[str, Any]]) -> None:
    serving, wanted = row["rollout"]["serving_revision"], row["rollout"]["revision"]

    def state(one: Mapping[str, Any]) -> str:
        if one["number"] == serving:
            return "serving"
        if one["number"] == wanted:
            return str(row["rollout"]["phase"])
        return "failed" if one["failed_at"] else ""

    print_table(
        ("REVISION", "STATE", "MODEL", "ENGINE", "CARDS", "CREATED BY", "CREATED", "MESSAGE"),
        [
            (
                one["number"],
                state(one),
                one["model_version"],
                one["engine"],
                one["cards"],
                one["created_by"],
                one["created_at"],
                one["failure_reason"],
            )
            for one in revisions
        ],
    )


@rollout.command()
def pause(ctx: typer.Context, name: DeploymentArgument) -> None:
    """Pause the rollout: no new replica starts and no old one stops."""
    _act(ctx, name, "pause", "paused")


@rollout.command()
def resume(ctx: typer.Context, name: DeploymentArgument) -> None:
    """Resume a paused rollout."""
    _act(ctx, name, "resume", "resumed")


@rollout.command()
def undo(
    ctx: typer.Context,
    name: DeploymentArgument,
    to_revision: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Number of the revision. Default: the one that serves while a rollout is in progress, or else "
            "the one before the newest.",
        ),
    ] = None,
) -> None:
    """Return to an earlier revision."""
    _act(ctx, name, "undo", "rolled back", {"to_revision": to_revision})


def _act(
    ctx: typer.Context, name: str, verb: str, done: str, body: Mapping[str, Any] | None = None
) -> None:
    with connected(ctx) as client:
        found = find_object(client, DEPLOYMENTS, name)
        row = client.post(f"deployments/{found['uid']}/rollout/{verb}", body)
    print(f"deployment/{row['name']} {done}: revision {row['rollout']['revision']}")


def _find(client: Client, name: str) -> dict[str, Any]:
    row: dict[str, Any] = client.get(f"deployments/{find_object(client, DEPLOYMENTS, name)['uid']}")
    return row
