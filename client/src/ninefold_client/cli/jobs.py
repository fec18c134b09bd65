"""``job`` and ``dataset``, and ``logs`` and ``events`` of what runs."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from ninefold_client.apply import JobKind
from ninefold_client.cli.context import ErrorReportingGroup, connected
from ninefold_client.cli.objects import ENDED, FileOption, manifests_of
from ninefold_client.cli.output import (
    OutputFormat,
    OutputOption,
    print_error,
    print_objects,
    print_table,
    refuse_progress,
)
from ninefold_client.client import Client
from ninefold_client.code_archives import upload_code
from ninefold_client.errors import ConnectionFailed, ManifestError, NinefoldError
from ninefold_client.resources import (
    DEPLOYMENTS,
    JOBS,
    PIPELINES,
    Resource,
    find_object,
    find_team,
    split_target,
)

JobArgument = Annotated[
    str, typer.Argument(help="Name or uid of the job; the newest one of that name.")
]

#: Of a job, in characters.
NAME_LENGTH = 120

job = typer.Typer(
    cls=ErrorReportingGroup, no_args_is_help=True, help="Run, submit, cancel, retry and await jobs."
)
dataset = typer.Typer(cls=ErrorReportingGroup, no_args_is_help=True, help="Upload datasets.")


@job.command()
def submit(
    ctx: typer.Context,
    filename: FileOption,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until the job ends.")] = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Submit each job of the documents, even if one of the same name exists."""
    if wait:
        refuse_progress(output, options="--wait")
    manifests = manifests_of(filename)
    if not manifests:
        raise ManifestError(f"{filename} contains no document; there is no job to submit")
    for manifest in manifests:
        if manifest.kind != JobKind.name:
            raise ManifestError(
                f"{manifest.source}: kind is {manifest.kind!r}; it must be 'Job'. Use: ninefold apply"
            )
    with connected(ctx) as client:
        submitted = [_submit(client, manifest) for manifest in manifests]
        print_objects(
            output,
            submitted,
            names=[f"job/{row['name']}" for row in submitted],
            table=lambda: _print_submitted(submitted),
        )
        if wait and not _wait_for_all(client, submitted):
            raise typer.Exit(1)


def _print_submitted(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        print(f"job/{row['name']} submitted: {row['uid']}", flush=True)


def _wait_for_all(client: Client, rows: list[dict[str, Any]]) -> bool:
    succeeded = [wait_for_job(client, row["uid"], timeout=None) for row in rows]
    return all(succeeded)


def _submit(client: Client, manifest: Any) -> dict[str, Any]:
    kind = JobKind(client)
    resolved = {
        name: str(find(client, str(manifest.spec[name]), team=manifest.team)["uid"])
        for name, find in kind.references.items()
        if manifest.spec.get(name) is not None
    }
    return dict(kind.create(kind.body(manifest, resolved)))


@job.command()
def run(
    ctx: typer.Context,
    argv: Annotated[
        list[str], typer.Argument(help="Program and arguments, after --.", metavar="-- PROGRAM …")
    ],
    folder: Annotated[
        Path, typer.Option(help="Folder to upload; the program starts in it.")
    ] = Path(),
    name: Annotated[str | None, typer.Option(help="Name. Default: the command.")] = None,
    team: Annotated[str | None, typer.Option(help="Owning team. Default: your only team.")] = None,
    queue: Annotated[str | None, typer.Option(help="Name of the queue. Default: default.")] = None,
    chip: Annotated[
        list[str] | None, typer.Option(help="Chip; repeat it for alternatives. Default: any.")
    ] = None,
    cards: Annotated[int, typer.Option(min=1, help="Number of cards.")] = 1,
    env: Annotated[
        list[str] | None, typer.Option(help="Environment variable NAME=VALUE; repeatable.")
    ] = None,
    time_limit: Annotated[
        int | None, typer.Option(min=1, help="Seconds until it is ended. Default: 3600.")
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until the job ends.")] = False,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Stream the log, and wait until the job ends.")
    ] = False,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Upload a folder and run a program of it as a job. With --wait or --follow exits with 1 if it fails.

    Files named by .ninefoldignore (patterns as in .gitignore) are not uploaded.
    """
    if wait or follow:
        refuse_progress(output, options="--wait and --follow")
    spec: dict[str, Any] = {"argv": argv}
    if env:
        spec["environment"] = dict(_variable_of(each) for each in env)
    if time_limit:
        spec["maximum_run_time_seconds"] = time_limit
    body: dict[str, Any] = {"kind": "script", "cards": cards, "spec": spec}
    body["name"] = name or " ".join(argv)[:NAME_LENGTH]
    with connected(ctx) as client:
        if team:
            body["team"] = find_team(client, team)
        body |= {"queue": queue} if queue else {}
        body["chips"] = chip or ["any"]
        body["code"] = upload_code(client, folder, team=body.get("team", ""))
        row = client.post("jobs", body)
        print_objects(
            output,
            row,
            names=[f"job/{row['name']}"],
            table=lambda: _print_submitted([row]),
        )
        if follow and _await_start(client, row["uid"]):
            _stream_log(client, row["uid"], offset=0, query={})
        if (wait or follow) and not wait_for_job(client, row["uid"], timeout=None):
            raise typer.Exit(1)


def _variable_of(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise NinefoldError(f"--env {text}: write NAME=VALUE")
    return name, value


def _await_start(client: Client, uid: str) -> bool:
    """Print why the job waits, until it runs or ends; return whether it has a log."""
    last = ""
    while (row := client.get(f"jobs/{uid}"))["state"] not in {"running", *ENDED}:
        if (line := _status_line(row)) != last:
            print(f"{time.strftime('%H:%M:%S')}  {row['name']}  {line}", flush=True)
            last = line
        time.sleep(1)
    return row["attempt"] is not None


@job.command()
def cancel(ctx: typer.Context, name: JobArgument) -> None:
    """Cancel a job. Its state changes after all of its processes have stopped."""
    with connected(ctx) as client:
        row = find_object(client, JOBS, name)
        client.post(f"jobs/{row['uid']}/cancel")
    print(f"job/{row['name']} cancellation requested: {row['uid']}")


@job.command()
def retry(ctx: typer.Context, name: JobArgument) -> None:
    """Retry a failed or cancelled job from its latest checkpoint."""
    with connected(ctx) as client:
        row = find_object(client, JOBS, name)
        client.post(f"jobs/{row['uid']}/retry")
    print(f"job/{row['name']} retried: {row['uid']}")


@job.command()
def wait(
    ctx: typer.Context,
    name: JobArgument,
    timeout: Annotated[
        float | None, typer.Option(min=1, help="Seconds to wait. Default: no limit.")
    ] = None,
) -> None:
    """Wait until a job ends. Exits with 1 if it did not succeed, or not in time."""
    with connected(ctx) as client:
        if not wait_for_job(client, find_object(client, JOBS, name)["uid"], timeout=timeout):
            raise typer.Exit(1)


def wait_for_job(client: Client, uid: str, *, timeout: float | None) -> bool:
    """Print each change until the job ends; return whether it succeeded."""
    began, last = time.monotonic(), ""
    while True:
        row = client.get(f"jobs/{uid}")
        line = _status_line(row)
        if line != last:
            print(f"{time.strftime('%H:%M:%S')}  {row['name']}  {line}", flush=True)
            last = line
        if row["state"] in ENDED:
            return bool(row["state"] == "succeeded")
        if timeout is not None and time.monotonic() - began > timeout:
            print_error(
                f"{row['name']} is {row['state']} after {timeout:g} seconds; wait longer with --timeout"
            )
            return False
        time.sleep(1)


def _status_line(row: dict[str, Any]) -> str:
    reason = row["state_reason"] or {}
    if row["state"] == "waiting" and row.get("pending_reason"):
        reason = row["pending_reason"]["explanation"] or {}
    progress = (row.get("attempt") or {}).get("progress") or {}
    step = f"step {progress['step']}" if row["state"] == "running" and "step" in progress else ""
    return "  ".join(part for part in (row["state"], step, reason.get("message", "")) if part)


def logs(
    ctx: typer.Context,
    target: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="Name or uid of a job, or deployment/NAME. Of several jobs, the newest.",
        ),
    ],
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Stream the log until its program has ended.")
    ] = False,
    attempt: Annotated[
        int | None, typer.Option(min=1, help="Number of a job's attempt. Default: the latest.")
    ] = None,
    replica: Annotated[
        str | None,
        typer.Option(
            help="Uid of a deployment's replica, or its beginning. Default: one that is ready."
        ),
    ] = None,
    process: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Process of a replica on several nodes. Default: 0, which serves the requests.",
        ),
    ] = None,
    tail: Annotated[int | None, typer.Option(min=1, help="Only the last bytes.")] = None,
) -> None:
    """Print the log of a job, or of a replica of a deployment."""
    kind, name = split_target(target, default=JOBS)
    if kind not in (JOBS, DEPLOYMENTS):
        raise typer.BadParameter(f"{kind.name} have no log; use job/NAME or deployment/NAME")
    if replica is not None and kind is JOBS:
        raise typer.BadParameter("--replica is of a deployment: ninefold logs deployment/NAME")
    if process is not None and kind is JOBS:
        raise typer.BadParameter("--process is of a deployment: ninefold logs deployment/NAME")
    if attempt is not None and kind is DEPLOYMENTS:
        raise typer.BadParameter("--attempt is of a job; a deployment has --replica")
    with connected(ctx) as client:
        row = find_object(client, kind, name)
        if kind is DEPLOYMENTS:
            query: dict[str, int] = {"process": process} if process else {}
            _print_replica_log(client, row, wanted=replica, follow=follow, tail=tail, query=query)
            return
        query = {"attempt": attempt} if attempt else {}
        offset, complete = _print_log(client, f"jobs/{row['uid']}/log", tail=tail, query=query)
        if follow and not complete:
            _stream_log(client, row["uid"], offset=offset, query=query)


def _print_log(
    client: Client, path: str, *, tail: int | None, query: dict[str, int]
) -> tuple[int, bool]:
    """Print what the log has; return the offset of what follows, and whether nothing will."""
    offset = -tail if tail else 0
    while True:
        part = client.get(path, offset=offset, limit=1_048_576, **query)
        sys.stdout.write(part["text"])
        sys.stdout.flush()
        offset = part["next_offset"]
        if part["complete"] or not part["text"]:
            return offset, part["complete"]


def _print_replica_log(
    client: Client,
    row: dict[str, Any],
    *,
    wanted: str | None,
    follow: bool,
    tail: int | None,
    query: dict[str, int],
) -> None:
    """Print the log of the current run of a replica, with ``follow`` also of later runs until it has stopped."""
    replica = _chosen_replica(row, wanted)
    path = f"replicas/{replica['uid']}/log"
    offset, complete = _print_log(client, path, tail=tail, query=query)
    while follow and not complete:
        time.sleep(1)
        row = client.get(f"deployments/{row['uid']}")
        current = next((one for one in _replicas(row) if one["uid"] == replica["uid"]), None)
        if current and current["generation"] != replica["generation"]:
            print_error(f"The replica was restarted: run {current['generation']}.")
            replica, offset = current, 0
        part = client.get(path, offset=offset, limit=1_048_576, **query)
        sys.stdout.write(part["text"])
        sys.stdout.flush()
        offset = part["next_offset"]
        complete = part["complete"] or (current is None and not part["text"])


def _replicas(row: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the replicas that have not stopped with the number of their revision, the oldest first."""
    found = [
        {**replica, "revision": revision["number"]}
        for revision in row["revisions"]
        for backend in revision["backends"]
        for replica in backend["replicas"]
    ]
    return sorted(found, key=lambda one: str(one["created_at"]))


def _chosen_replica(row: dict[str, Any], wanted: str | None) -> dict[str, Any]:
    """Return the replica whose uid begins with ``wanted``; by default a ready one, or else the newest.

    :raises NinefoldError: if there is none, or several.
    """
    replicas = _replicas(row)
    if not replicas:
        raise NinefoldError(
            f"deployment {row['name']} is {row['state']} and has no replicas. "
            f"See: ninefold events deployment/{row['name']}"
        )
    if wanted is None:
        ready = [one for one in replicas if one["state"] == "ready"]
        chosen = ready[0] if ready else replicas[-1]
        if len(replicas) > 1:
            print_error(f"Found {len(replicas)} replicas, using {chosen['uid']}.")
        return chosen
    matching = [one for one in replicas if one["uid"].startswith(wanted)]
    if len(matching) == 1:
        return matching[0]
    known = ", ".join(f"{one['uid']} ({one['state']})" for one in replicas)
    count = "several replicas" if matching else "no replica"
    raise NinefoldError(
        f"deployment {row['name']} has {count} whose uid begins with {wanted!r}; replicas: {known}"
    )


def _stream_log(client: Client, uid: str, *, offset: int, query: dict[str, int]) -> None:
    """Write the log as it grows; reconnect with the number of received bytes until the log is complete."""
    failures = 0
    while True:
        received = 0
        try:
            for content in client.stream_text(
                f"jobs/{uid}/log", follow=True, offset=offset, **query
            ):
                received += len(content)
                sys.stdout.buffer.write(content)
                sys.stdout.buffer.flush()
        except ConnectionFailed:
            failures = 0 if received else failures + 1
            if failures > 5:
                raise
            time.sleep(min(2.0**failures / 4, 5))
        offset += received
        part = client.get(f"jobs/{uid}/log", offset=offset, limit=1024, **query)
        if part["complete"] and not part["text"]:
            return


def events(
    ctx: typer.Context,
    target: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="Name or uid of a job, deployment/NAME or pipeline/NAME. Of several, the newest.",
        ),
    ],
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Show the state transitions of a job, a deployment with its replicas, or a pipeline with its steps."""
    kind, name = split_target(target, default=JOBS)
    if kind not in (JOBS, DEPLOYMENTS, PIPELINES):
        raise typer.BadParameter(
            f"{kind.name} have no events; use job/NAME, deployment/NAME or pipeline/NAME"
        )
    with connected(ctx) as client:
        found = client.get(f"{kind.path}/{find_object(client, kind, name)['uid']}/events")
    # The server has those of jobs in this order, the others latest first.
    ordered = found if kind is JOBS else found[::-1]
    print_objects(
        output,
        ordered,
        names=[one["event"] for one in ordered],
        table=lambda: print_table(
            ["TIME", "OBJECT", "EVENT", "FROM", "TO", "BY", "REASON"],
            [
                [one["at"], _subject(kind, one), one["event"], one["from_state"], one["to_state"],
                 one["actor"], one["reason"]]
                for one in ordered
            ],
        ),
    )  # fmt: skip


def _subject(kind: Resource, event: dict[str, Any]) -> str:
    if event.get("replica"):
        return f"replica/{event['replica']}"
    return kind.singular if event.get("step") is None else f"step {event['step']}"


@dataset.command()
def upload(
    ctx: typer.Context,
    file: Annotated[
        Path,
        typer.Argument(
            exists=True, dir_okay=False, help="JSON Lines, a JSON array, or CSV; UTF-8."
        ),
    ],
    name: Annotated[
        str, typer.Option(help="Name of the dataset; an existing name adds a version.")
    ],
    team: Annotated[str | None, typer.Option(help="Owning team. Default: your only team.")] = None,
    description: Annotated[str, typer.Option(help="Description of the dataset.")] = "",
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Upload a file as a dataset, or as a new version of one."""
    with connected(ctx) as client:
        fields = {"name": name, "description": description}
        if team:
            fields["team"] = find_team(client, team)
        try:
            content = file.read_bytes()
        except OSError as error:
            raise NinefoldError(f"{file} cannot be read: {error.strerror}") from error
        version = client.upload("datasets", file=(file.name, content), fields=fields)
    print_objects(
        output,
        version,
        names=[f"dataset/{name}"],
        table=lambda: print(
            f"dataset/{name} version {version['number']} uploaded with {version['row_count']} examples: "
            f"{version['uid']}"
        ),
    )
