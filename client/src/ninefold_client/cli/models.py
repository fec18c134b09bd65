"""``model``: imports of model versions."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer

from ninefold_client.cli.context import ErrorReportingGroup, connected
from ninefold_client.cli.output import OutputFormat, OutputOption, print_error, print_objects
from ninefold_client.client import Client
from ninefold_client.errors import NinefoldError
from ninefold_client.kinds.registry import checked_source, import_model_version
from ninefold_client.resources import find_model_version, find_team, split_version

model = typer.Typer(
    cls=ErrorReportingGroup,
    no_args_is_help=True,
    help="Import models from hubs and folders; cancel and retry imports.",
)

TeamOption = Annotated[str | None, typer.Option(help="Owning team. Default: your only team.")]
WaitOption = Annotated[
    bool,
    typer.Option(
        "--wait", help="Wait until the version is ready. Exits with 1 if the import fails."
    ),
]
TimeoutOption = Annotated[float, typer.Option(min=1, help="Seconds to wait.")]


@model.command("import")
def import_model(
    ctx: typer.Context,
    name: Annotated[str, typer.Option(help="Name of the model; an existing name adds a version.")],
    repository: Annotated[
        str | None,
        typer.Argument(help="Owner and name of a repository of the hub, such as Qwen/Qwen3-8B."),
    ] = None,
    hub: Annotated[
        str | None, typer.Option(help="Model hub: huggingface, modelscope or another one.")
    ] = None,
    revision: Annotated[
        str | None,
        typer.Option(help="Branch, tag or commit. Default: the default branch of the hub."),
    ] = None,
    path: Annotated[
        str | None,
        typer.Option(help="Folder below a model root (NINEFOLD_MODEL_ROOTS) of the server."),
    ] = None,
    team: TeamOption = None,
    wait: WaitOption = False,
    timeout: TimeoutOption = 3600,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Import a repository of a model hub, or a folder on the server, as a version of a model."""
    from_hub = {"hub": hub, "repository": repository, "revision": revision}
    if path is not None and any(from_hub.values()):
        raise typer.BadParameter("--path is a folder on the server; remove the repository of a hub")
    if path is None and not (repository and hub):
        raise typer.BadParameter("give --hub HUB and a REPOSITORY, or --path FOLDER")
    source = checked_source({**from_hub, "path": path})
    with connected(ctx) as client:
        owner = find_team(client, team) if team else ""
        version = import_model_version(client, name=name, source=source, team=owner)
        _report(client, version, "import started", wait=wait, timeout=timeout, output=output)


VersionArgument = Annotated[
    str, typer.Argument(help='Model version as "model@2" or "model v2", "model", or uid.')
]


@model.command()
def retry(
    ctx: typer.Context,
    version: VersionArgument,
    team: TeamOption = None,
    wait: WaitOption = False,
    timeout: TimeoutOption = 3600,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Retry a failed or cancelled import; of a model, the newest one. Downloaded files are kept."""
    with connected(ctx) as client:
        found = find_model_version(client, version, team=team or "", state="failed")
        row = client.post(f"model-versions/{found['uid']}/retry")
        _report(client, row, "import restarted", wait=wait, timeout=timeout, output=output)


@model.command()
def cancel(
    ctx: typer.Context,
    version: VersionArgument,
    team: TeamOption = None,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Cancel an import; of a model, the newest one. Downloaded files are kept for a retry."""
    with connected(ctx) as client:
        found = find_model_version(client, version, team=team or "", state="importing")
        row = client.post(f"model-versions/{found['uid']}/cancel")
        _report(client, row, "import cancelled", wait=False, timeout=0, output=output)


def _report(
    client: Client,
    row: Mapping[str, Any],
    done: str,
    *,
    wait: bool,
    timeout: float,
    output: OutputFormat,
) -> None:
    """Print what was done; with ``wait``, the progress of the import as well.

    :raises NinefoldError: if the import fails or does not end in time.
    """
    line = f"model/{row['model']['name']} version {row['number']} {done}: {row['uid']}"
    is_table = output is OutputFormat.TABLE
    if is_table:
        print(line, flush=True)
    if wait:
        # Standard output has only the version then, for a program that reads it.
        show = _print_progress if is_table else print_error
        row = wait_for_import(client, row["uid"], timeout=timeout, show=show)
    if not is_table:
        names = [f"model-version/{row['name']}"]
        print_objects(output, dict(row), names=names, table=lambda: None)


def _print_progress(line: str) -> None:
    print(line, flush=True)


def wait_for_import(
    client: Client, uid: str, *, timeout: float, show: Callable[[str], None] = _print_progress
) -> dict[str, Any]:
    """Show each change until the version is ready, and return it.

    :raises NinefoldError: with the reason if the import fails, or if it does not end in time.
    """
    began, last = time.monotonic(), ""
    while True:
        row: dict[str, Any] = client.get(f"model-versions/{uid}")
        reason = (row["state_reason"] or {}).get("message", "")
        reference = "@".join(split_version(row["name"]))
        if row["state"] not in {"importing", "ready"}:
            hint = f". Retry with: ninefold model retry {reference}"
            raise NinefoldError(
                f"{row['name']} is {row['state']}: {reason}{hint if row['state'] == 'failed' else ''}"
            )
        line = "  ".join(
            part for part in (row["name"], row["state"], _progress(row) or reason) if part
        )
        if line != last:
            show(f"{time.strftime('%H:%M:%S')}  {line}")
            last = line
        if row["state"] == "ready":
            return row
        if time.monotonic() - began > timeout:
            raise NinefoldError(
                f"{row['name']} is {row['state']} after {timeout:g} seconds; wait longer with --timeout"
            )
        time.sleep(1)


def _progress(row: Mapping[str, Any]) -> str:
    """Return the share of a download from a hub, and why it waits for another attempt."""
    fetched = row["fetched"]
    if row["state"] != "importing" or not fetched:
        return ""
    share = 100 * fetched["received"] // (fetched["size"] or 1)
    error = (fetched["error"] or {}).get("message", "")
    return "  ".join(
        part for part in (f"{share} % of {_bytes_text(fetched['size'])}", error) if part
    )


def _bytes_text(size: float) -> str:
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} TiB"
