"""``login``, ``logout``, ``whoami`` and ``context``."""

from __future__ import annotations

import sys
import webbrowser
from typing import Annotated

import typer

from ninefold_client.cli.context import CommonOptions, connected
from ninefold_client.cli.output import (
    OutputFormat,
    OutputOption,
    print_error,
    print_objects,
    print_table,
)
from ninefold_client.client import Client
from ninefold_client.configuration import (
    DEFAULT_CONTEXT,
    Context,
    configuration_path,
    load_configuration,
    save_configuration,
    valid_url,
)
from ninefold_client.device_login import await_device_token, request_device_code
from ninefold_client.errors import ConfigurationError, NinefoldError


def login(
    ctx: typer.Context,
    url: Annotated[
        str | None, typer.Argument(help="Address of Ninefold, for example http://127.0.0.1:8000.")
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(
            "--token",
            help="Personal token instead of a sign-in with the browser; - reads it from standard input.",
        ),
    ] = None,
    scope: Annotated[
        list[str] | None,
        typer.Option(
            help="Scope of the new token: read, models, jobs, serving, admin or all; repeat it. Default: all."
        ),
    ] = None,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")
    ] = True,
) -> None:
    """Sign in with the browser, or with a personal token, and store the token in the configuration file.

    Shows a code and the address of a page. Approve the code there, on any device; then a new personal token is
    stored. For scripts, create a token on the profile page and give it with --token.
    """
    options: CommonOptions = ctx.ensure_object(CommonOptions)
    address = valid_url(
        url or options.url or typer.prompt("Address of Ninefold", default="http://127.0.0.1:8000")
    )
    if token == "-":  # noqa: S105 - the name of standard input
        token = sys.stdin.readline().strip()
    elif token is None:
        token = _sign_in_with_browser(address, scopes=scope or ["all"], browser=browser)
    if not token:
        raise ConfigurationError(
            "the token is empty; create one on your profile page and try again"
        )
    with Client(url=address, token=token) as client:
        user = client.get("me")
    path = configuration_path()
    name = options.context or DEFAULT_CONTEXT
    configuration = load_configuration(path).with_context(name, Context(url=address, token=token))
    save_configuration(configuration, path=path)
    print(f"Signed in to {address} as {user['username']}. Stored as context {name} in {path}.")


def _sign_in_with_browser(address: str, *, scopes: list[str], browser: bool) -> str:
    code = request_device_code(address, scopes=scopes)
    print_error(f"Open {code.page} and compare the code {code.user_code}.")
    # Without a terminal there is nobody to look at a browser on this computer.
    if browser and sys.stdin.isatty():
        webbrowser.open(code.page)
    print_error(f"Waiting for approval; the code expires in {code.expires_in // 60} minutes …")
    return await_device_token(address, code)


def logout(ctx: typer.Context) -> None:
    """Remove the stored credentials, and delete the gateway keys that the client created.

    The personal token stays valid until it is revoked on the profile page.
    """
    options: CommonOptions = ctx.ensure_object(CommonOptions)
    path = configuration_path()
    configuration = load_configuration(path)
    name = options.context or configuration.current
    context = configuration.contexts.get(name)
    if context is None:
        raise ConfigurationError(f"there is no context {name!r} in {path}; nothing was removed")
    if context.gateway_keys:
        with Client(url=context.url, token=context.token) as client:
            for key in context.gateway_keys.values():
                try:
                    client.delete(f"keys/{key['uid']}")
                except NinefoldError as error:
                    print_error(f"The gateway key {key['uid']} was not deleted: {error}")
    save_configuration(configuration.without_context(name), path=path)
    print(
        f"Removed context {name}. Revoke its token on the profile page of {context.url} "
        "if it is not used elsewhere."
    )


def whoami(
    ctx: typer.Context,
    output: OutputOption = OutputFormat.TABLE,
) -> None:
    """Show the user, the roles and the teams of the token."""
    with connected(ctx) as client:
        user = client.get("me")
        url, context = client.credentials.url, client.credentials.context
    roles = ["administrator"] if user["administrator"] else user["company_roles"]
    teams = [f"{team['slug']} ({', '.join(team['roles']) or 'no role'})" for team in user["teams"]]
    print_objects(
        output,
        user,
        names=[user["username"]],
        table=lambda: print_table(
            ["USER", "SERVER", "CONTEXT", "COMPANY ROLES", "TEAMS"],
            [[user["username"], url, context, roles, teams]],
        ),
    )


def contexts(
    name: Annotated[
        str | None, typer.Argument(help="Context to switch to. Default: lists all.")
    ] = None,
) -> None:
    """List the contexts of the configuration file, or switch to one."""
    path = configuration_path()
    configuration = load_configuration(path)
    if name is None:
        print_table(["CURRENT", "NAME", "SERVER"],
                    [["*" if each == configuration.current else "", each, one.url]
                     for each, one in configuration.contexts.items()])  # fmt: skip
        return
    if name not in configuration.contexts:
        known = ", ".join(configuration.contexts) or "none"
        raise ConfigurationError(f"{path} has no context {name!r}; its contexts: {known}")
    save_configuration(configuration.with_context(name, configuration.contexts[name]), path=path)
    print(f"The current context is {name}.")
