"""The command line against a live server: a small company, and a configuration file of its own."""

from __future__ import annotations

import functools
import secrets
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import typer.main
import typer.testing
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer
from typer.testing import CliRunner

from apps.accounts import services as accounts
from apps.accounts.models import User
from controlplane.domain.common.permissions import Scope
from controlplane.ports import adapter_registry
from controlplane.ports.engines import Engine
from controlplane.web import watch
from ninefold_client.cli.main import app
from tests.hubs import LocalHub, configured_hub
from tests.integration import company as companies
from tests.integration.company import Company


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    exit_code: int
    output: str
    errors: str


#: Runs ``ninefold`` with arguments and a text for standard input.
Ninefold = Callable[..., CommandResult]


@pytest.fixture(autouse=True, scope="session")
def commands_are_built_once() -> Iterator[None]:
    """Typer builds all of them for every run, which takes longer than most requests."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.testing, "_get_command", functools.cache(typer.main.get_command))
        yield


@pytest.fixture
def company(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, transactional_db: None
) -> Company:
    settings.NINEFOLD_HOME = tmp_path / "home"
    settings.NINEFOLD_HOME.mkdir()
    # A stream learns by the next bookmark that its client has left.
    monkeypatch.setattr(watch, "_BOOKMARK_EVERY", 0.5)
    engines: dict[str, Engine] = {companies.ENGINE: companies.PlainEngine()}
    monkeypatch.setattr(adapter_registry, "engine_by_name", engines.__getitem__)
    monkeypatch.setattr(adapter_registry, "engine_names", lambda: tuple(engines))
    return companies.found(node=f"fake-{uuid.uuid4().hex[:12]}")


@pytest.fixture
def hub(company: Company, settings: Settings) -> Iterator[LocalHub]:
    """A model hub without repositories."""
    with configured_hub(settings) as found:
        yield found


@pytest.fixture
def administrator(company: Company) -> User:
    return User.objects.create(username="root", is_superuser=True, is_staff=True)


@pytest.fixture
def configuration_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "configuration" / "config.yaml"
    for name in ("NINEFOLD_URL", "NINEFOLD_TOKEN", "NINEFOLD_CONTEXT", "NINEFOLD_GATEWAY_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NINEFOLD_CONFIG", str(path))
    return path


@pytest.fixture
def ninefold(configuration_file: Path) -> Ninefold:
    def run(*arguments: str, text: str = "") -> CommandResult:
        done = CliRunner().invoke(app, arguments, input=text, prog_name="ninefold")
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return CommandResult(exit_code=done.exit_code, output=done.stdout, errors=done.stderr)

    return run


def token_of(user: User, *scopes: Scope) -> str:
    _, text = accounts.token_create(
        user=user, name=f"cli {secrets.token_hex(4)}", scopes=frozenset(scopes or {Scope.ALL})
    )
    return text


@pytest.fixture
def signed_in(ninefold: Ninefold, company: Company, live_server: LiveServer) -> Ninefold:
    """The command line of the engineer."""
    done = ninefold("login", live_server.url, "--token", "-", text=token_of(company.engineer))
    assert done.exit_code == 0, done.errors
    return ninefold
