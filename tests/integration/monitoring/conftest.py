from __future__ import annotations

import socket
from collections.abc import Iterator
from dataclasses import dataclass
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

import pytest
from aiosmtpd.controller import Controller
from pytest_django import Settings

from apps.accounts.models import Team, User
from apps.quotas.models import Queue
from controlplane.domain.common.permissions import TeamRole
from controlplane.domain.outbound.egress import EgressPolicy
from tests import factories
from tests.contract.web_servers import WebServer, web_server


@dataclass(frozen=True, slots=True, kw_only=True)
class Office:
    """Ada makes things, Bob is in her team, Vera administers it, Eve is elsewhere."""

    team: Team
    ada: User
    bob: User
    vera: User
    eve: User
    queue: Queue


@pytest.fixture
def office(db: None) -> Office:
    team = factories.team()
    users = {
        # Vera also operates the fleet, by the company role.
        name: factories.user(name, team=where, role=role, operator=name == "vera")
        for name, where, role in (
            ("ada", team, TeamRole.ENGINEER),
            ("bob", team, TeamRole.ENGINEER),
            ("vera", team, TeamRole.ADMINISTRATOR),
            ("eve", factories.team("search"), TeamRole.ADMINISTRATOR),
        )
    }
    for name, user in users.items():
        user.email = f"{name}@example.com"
        user.save()
    return Office(team=team, queue=factories.queue(), **users)


@pytest.fixture
def operator(db: None) -> User:
    """Somebody who operates the fleet, of a team that has nothing else."""
    return factories.user("olga", team=factories.team("plant"), role=TeamRole.VIEWER, operator=True)


class Postbox:
    """Takes e-mail by SMTP and keeps it; ``refuse`` is what it says instead, if anything."""

    def __init__(self) -> None:
        self.messages: list[EmailMessage] = []
        self.refuse: dict[str, str] = {}
        #: Takes nothing at all once it has refused an address.
        self.hangs = False

    async def handle_MAIL(  # noqa: N802 - named by aiosmtpd
        self, server: Any, session: Any, envelope: Any, address: str, options: list[str]
    ) -> str:
        if "MAIL" in self.refuse:
            return self.refuse["MAIL"]
        envelope.mail_from = address
        return "250 OK"

    async def handle_RCPT(  # noqa: N802 - named by aiosmtpd
        self, server: Any, session: Any, envelope: Any, address: str, options: list[str]
    ) -> str:
        if address in self.refuse:
            if self.hangs:
                self.refuse["MAIL"] = "421 closing"
            return self.refuse[address]
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802
        if "DATA" in self.refuse:
            return self.refuse["DATA"]
        message = message_from_bytes(envelope.content, policy=policy.default)
        assert isinstance(message, EmailMessage)
        self.messages.append(message)
        return "250 OK"

    def texts(self) -> list[str]:
        """The plain part of each message."""
        bodies = [message.get_body(("plain",)) for message in self.messages]
        return [body.get_content() for body in bodies if body is not None]


@pytest.fixture
def postbox(settings: Settings) -> Iterator[Postbox]:
    """A real mail server, which the product is set up to use."""
    box = Postbox()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    controller = Controller(box, hostname="127.0.0.1", port=port)
    controller.start()
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", port
    settings.NINEFOLD_EMAIL_FROM = "ninefold@example.com"
    settings.NINEFOLD_PUBLIC_URL = "https://ninefold.example.com"
    yield box
    controller.stop()


@pytest.fixture
def receiver(settings: Settings) -> Iterator[WebServer]:
    """A web server that the policy lets the product call."""
    with web_server() as server:
        settings.NINEFOLD_EGRESS = EgressPolicy.parse(
            allow=["127.0.0.0/8"], schemes=["http", "https"], ports=[443, server.port]
        )
        yield server
