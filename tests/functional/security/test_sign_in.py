"""Guessing passwords, and exhausting the server with log-ins."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from ipaddress import ip_network

import pytest
from django.contrib.auth.hashers import PBKDF2PasswordHasher, check_password, make_password
from django.db import connections
from django.test import Client
from pytest_django import Settings

from apps.accounts.models import User
from config.settings import base
from controlplane.web import password_hashing
from controlplane.web.password_hashing import HashingLimit, PasswordHashingBusy
from tests import factories

HASHER = "controlplane.web.password_hashing.ConcurrencyLimitedPBKDF2PasswordHasher"


@pytest.fixture
def engineer(db: None) -> User:
    return factories.user("mei")


def log_in(client: Client, username: str, password: str = "wrong") -> int:
    return client.post("/login", {"username": username, "password": password}).status_code


def test_an_address_is_locked_out_whatever_the_user_names(
    engineer: User, settings: Settings
) -> None:
    settings.NINEFOLD_LOGIN_ADDRESS_FAILURES = 6
    spraying = Client(REMOTE_ADDR="203.0.113.9")
    assert [log_in(spraying, f"person-{number}") for number in range(6)] == [200] * 6
    locked = spraying.post("/login", {"username": "mei", "password": "open sesame"})
    assert locked.status_code == 429
    assert "from this network address" in locked.text
    assert 850 < int(locked["Retry-After"]) <= 900
    assert log_in(Client(REMOTE_ADDR="203.0.113.10"), "mei", "open sesame") == 302


def test_ipv6_clients_are_counted_by_their_64_bit_network(
    engineer: User, settings: Settings
) -> None:
    settings.NINEFOLD_LOGIN_ADDRESS_FAILURES = 6
    for number in range(6):
        log_in(Client(REMOTE_ADDR=f"2001:db8:1:2::{number + 1:x}"), f"person-{number}")
    assert log_in(Client(REMOTE_ADDR="2001:db8:1:2:ffff::7"), "mei", "open sesame") == 429
    assert log_in(Client(REMOTE_ADDR="2001:db8:1:3::1"), "mei", "open sesame") == 302


def test_a_name_is_locked_out_for_the_whole_ipv6_network(engineer: User) -> None:
    for number in range(5):
        log_in(Client(REMOTE_ADDR=f"2001:db8:1:2::{number + 1:x}"), "mei")
    assert log_in(Client(REMOTE_ADDR="2001:db8:1:2::99"), "mei", "open sesame") == 429


def test_behind_a_trusted_proxy_the_client_is_locked_out_and_not_the_proxy(
    engineer: User, settings: Settings
) -> None:
    settings.NINEFOLD_LOGIN_ADDRESS_FAILURES = 6
    settings.NINEFOLD_TRUSTED_PROXIES = (ip_network("10.0.0.0/8"),)

    def through_proxy(address: str) -> Client:
        return Client(REMOTE_ADDR="10.0.0.2", headers={"X-Forwarded-For": f"1.2.3.4, {address}"})

    for number in range(6):
        log_in(through_proxy("203.0.113.9"), f"person-{number}")
    assert log_in(through_proxy("203.0.113.9"), "mei", "open sesame") == 429
    assert log_in(through_proxy("203.0.113.10"), "mei", "open sesame") == 302


def test_wrong_tokens_are_counted_by_their_64_bit_network(db: None, settings: Settings) -> None:
    settings.NINEFOLD_TOKEN_FAILURES = 3
    statuses = [
        Client(REMOTE_ADDR=f"2001:db8:1:2::{number + 1:x}")
        .get("/api/v1/me", headers={"Authorization": "Bearer nfp-wrong"})
        .status_code
        for number in range(4)
    ]
    assert statuses == [401, 401, 401, 429]


class CountingHasher:
    """Replaces the computation of PBKDF2 by one that counts how many run at a time, and waits."""

    def __init__(self) -> None:
        self.release = threading.Event()
        self.entered = threading.Semaphore(0)
        self.most = self.running = 0
        self._lock = threading.Lock()

    def encode(self, password: str, salt: str, iterations: int | None = None) -> str:
        with self._lock:
            self.running += 1
            self.most = max(self.most, self.running)
        self.entered.release()
        assert self.release.wait(60)
        with self._lock:
            self.running -= 1
        return f"pbkdf2_sha256${iterations or 1}${salt}$x"


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch, settings: Settings) -> Iterator[CountingHasher]:
    counted = CountingHasher()
    settings.PASSWORD_HASHERS = [HASHER]
    monkeypatch.setattr(
        PBKDF2PasswordHasher,
        "encode",
        counted.encode,
    )
    limit = HashingLimit(concurrent=2, queued=3, timeout_seconds=60)
    monkeypatch.setattr(password_hashing, "LIMIT", limit)
    yield counted
    counted.release.set()


def test_the_product_hashes_with_the_limit() -> None:
    assert base.PASSWORD_HASHERS == [HASHER]


@pytest.mark.django_db(transaction=True)
def test_parallel_log_ins_hash_at_most_as_many_passwords_as_the_limit(
    counting: CountingHasher,
) -> None:
    statuses: list[int] = []
    refused = threading.Semaphore(0)

    def attempt(number: int) -> None:
        response = Client(REMOTE_ADDR=f"203.0.113.{number}").post(
            "/login", {"username": f"person-{number}", "password": "wrong"}
        )
        statuses.append(response.status_code)
        if response.status_code == 503:
            assert response["Retry-After"]
            assert "Too many sign-ins at once" in response.text
            refused.release()
        connections.close_all()

    threads = [threading.Thread(target=attempt, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    # Two hash, three are queued, and the other seven are refused at once: none waits for a hash to end.
    for _ in range(7):
        assert refused.acquire(timeout=60)
    for _ in range(2):
        assert counting.entered.acquire(timeout=60)
    assert Client().get("/healthz").status_code == 200
    counting.release.set()
    for thread in threads:
        thread.join(60)
    assert counting.most == 2
    assert sorted(statuses) == [200] * 5 + [503] * 7


def test_every_way_to_hash_goes_through_the_limit(
    engineer: User, counting: CountingHasher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        password_hashing, "LIMIT", HashingLimit(concurrent=0, queued=0, timeout_seconds=1)
    )
    encoded = "pbkdf2_sha256$1$salt$x"
    User.objects.filter(pk=engineer.pk).update(password=encoded)
    client = Client()
    client.force_login(User.objects.get(pk=engineer.pk))
    new = {"new_password1": "a longer sentence 7", "new_password2": "a longer sentence 7"}
    assert log_in(Client(), "mei") == 503
    assert log_in(Client(), "nobody") == 503
    assert client.post("/profile/password", {"old_password": "x", **new}).status_code == 503
    for hashing in (lambda: make_password("x"), lambda: check_password("x", encoded)):
        with pytest.raises(PasswordHashingBusy):
            hashing()


def test_a_slot_is_free_again_after_an_error_and_after_a_refusal() -> None:
    limit = HashingLimit(concurrent=1, queued=0, timeout_seconds=1)
    with pytest.raises(KeyError), limit.slot():
        raise KeyError
    with limit.slot(), pytest.raises(PasswordHashingBusy), limit.slot():
        pass
    with limit.slot():
        pass
