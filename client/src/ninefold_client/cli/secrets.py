"""``key`` and ``token``: what is shown only once when it is created."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import typer

from ninefold_client.cli.context import ErrorReportingGroup, connected
from ninefold_client.cli.output import print_error
from ninefold_client.resources import find_team

key = typer.Typer(cls=ErrorReportingGroup, no_args_is_help=True, help="Create gateway keys.")
token = typer.Typer(cls=ErrorReportingGroup, no_args_is_help=True, help="Create personal tokens.")

NameArgument = Annotated[str, typer.Argument(help="Name, to tell it apart from others.")]
DaysOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        help="Days until it expires. Default: it does not expire, where the installation permits that.",
    ),
]


@key.callback()
def _keys() -> None:
    """Keep ``create`` a command of its own."""


@token.callback()
def _tokens() -> None:
    """Keep ``create`` a command of its own."""


@key.command("create")
def key_create(
    ctx: typer.Context,
    name: NameArgument,
    team: Annotated[str | None, typer.Option(help="Owning team. Default: your only team.")] = None,
    route: Annotated[
        list[str] | None,
        typer.Option(help="Route that it may call; repeat it. Default: all of the team."),
    ] = None,
    days: DaysOption = None,
) -> None:
    """Create a gateway key, and print its text to standard output."""
    with connected(ctx) as client:
        body: dict[str, Any] = {"name": name, **({"routes": route} if route else {})}
        if team:
            body["team"] = find_team(client, team)
        created = client.post("keys", {**body, **_expiry(days)})
    print_error(f"gateway-key/{name} created: {created['uid']}. Its text is not shown again:")
    print(created["text"])


@token.command("create")
def token_create(
    ctx: typer.Context,
    name: NameArgument,
    scope: Annotated[
        list[str] | None,
        typer.Option(help="read, models, jobs, serving, admin or all; repeat it. Default: read."),
    ] = None,
    team: Annotated[
        str | None, typer.Option(help="The only team that it may see. Default: all of your teams.")
    ] = None,
    days: DaysOption = None,
) -> None:
    """Create a personal token, and print its text to standard output."""
    with connected(ctx) as client:
        body: dict[str, Any] = {"name": name, "scopes": scope or ["read"]}
        if team:
            body["team"] = find_team(client, team)
        created = client.post("tokens", {**body, **_expiry(days)})
    print_error(f"personal-token/{name} created: {created['uid']}. Its text is not shown again:")
    print(created["text"])


def _expiry(days: int | None) -> dict[str, str]:
    return {"expires_at": (datetime.now(tz=UTC) + timedelta(days=days)).isoformat()} if days else {}
