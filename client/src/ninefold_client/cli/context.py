"""What the commands share: the options before the command, the client, and errors with an exit code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import typer
from typer.core import TyperGroup

from ninefold_client.cli.output import print_error
from ninefold_client.client import Client
from ninefold_client.errors import ApiError, NinefoldError


@dataclass(frozen=True, slots=True, kw_only=True)
class CommonOptions:
    """Options before the command; None where not given."""

    context: str | None = None
    url: str | None = None


class ErrorReportingGroup(TyperGroup):
    """Prints errors of the package to standard error and exits with 1."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except NinefoldError as error:
            for line in error_lines(error):
                print_error(line)
            raise typer.Exit(1) from error
        except KeyboardInterrupt:
            raise typer.Exit(130) from None


def error_lines(error: NinefoldError) -> Iterator[str]:
    """Iterate over the lines that explain an error: message, invalid fields, and what to do."""
    if not isinstance(error, ApiError):
        yield f"Error: {error}"
        return
    yield f"Error: {error.message} ({error.code})"
    for one in error.errors:
        if one.message != error.message or one.field:
            yield f"  {one.field or 'request'}: {one.message}"
    if error.status == 401:
        yield "Sign in again: ninefold login"
    elif error.status >= 500 and error.request_id:
        yield f"The server's log has this request as {error.request_id}."


@contextmanager
def connected(ctx: typer.Context) -> Iterator[Client]:
    """Yield a client for the options of the command line."""
    options: CommonOptions = ctx.ensure_object(CommonOptions)
    with Client(url=options.url, context=options.context) as client:
        yield client
