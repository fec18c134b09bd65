"""The application: all commands, and the options before them."""

from __future__ import annotations

from importlib import metadata
from typing import Annotated

import typer

from ninefold_client.cli import apply, jobs, objects, rollouts, secrets, serving, session
from ninefold_client.cli.context import CommonOptions, ErrorReportingGroup

app = typer.Typer(
    name="ninefold",
    cls=ErrorReportingGroup,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Command-line client of Ninefold. Exit codes: 0 success, 1 error, 2 invalid usage, 130 interrupted.",
)


def _print_version(value: bool) -> None:
    if value:
        print(f"ninefold {metadata.version('ninefold-client')}")
        raise typer.Exit


@app.callback()
def common_options(
    ctx: typer.Context,
    context: Annotated[
        str | None,
        typer.Option(envvar="NINEFOLD_CONTEXT", help="Context of the configuration file."),
    ] = None,
    url: Annotated[
        str | None,
        typer.Option(envvar="NINEFOLD_URL", help="Address of Ninefold, instead of the context's."),
    ] = None,
    _version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_print_version,
            is_eager=True,
            help="Print the version of the client.",
        ),
    ] = False,
) -> None:
    ctx.obj = CommonOptions(context=context, url=url)


for _command in (
    session.login,
    session.logout,
    session.whoami,
    objects.get,
    objects.describe,
    objects.watch,
    apply.apply,
    apply.diff,
    apply.delete,
    objects.quota,
    jobs.logs,
    jobs.events,
    serving.deploy,
    serving.predownload,
    serving.chat,
):
    app.command()(_command)
app.command("context")(session.contexts)
app.add_typer(jobs.job, name="job")
app.add_typer(jobs.dataset, name="dataset")
app.add_typer(rollouts.rollout, name="rollout")
app.add_typer(secrets.key, name="key")
app.add_typer(secrets.token, name="token")


def main() -> None:
    """Run the command line of this process."""
    app()
