"""What every outbound adapter does, and what the real one does on a real network."""

from __future__ import annotations

import json
import ssl
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, ip_address
from pathlib import Path

import pytest

from controlplane.adapters.fakes.in_memory import MemoryOutbound, RecordedCall
from controlplane.adapters.outbound_http import HttpOutbound
from controlplane.domain.outbound.egress import Address, EgressPolicy, EgressRefused
from controlplane.ports.outbound_http import OutboundFailed, OutboundHttpClient
from tests.contract.web_servers import Request, WebServer, make_certificate, web_server

LOOPBACK = IPv4Address("127.0.0.1")
NAMES: dict[str, tuple[Address, ...]] = {
    "hooks.example.com": (LOOPBACK,),
    "inside.example.com": (ip_address("10.0.0.1"),),
    "both.example.com": (LOOPBACK, ip_address("10.0.0.1")),
}


def policy(*ports: int) -> EgressPolicy:
    return EgressPolicy.parse(allow=["127.0.0.0/8"], schemes=["http", "https"], ports=[443, *ports])


def resolver(host: str, port: int) -> Sequence[Address]:
    if host not in NAMES:
        raise OSError("no such name")
    return NAMES[host]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    outbound: OutboundHttpClient
    server: WebServer

    def url(self, path: str = "/", host: str = "hooks.example.com") -> str:
        return f"http://{host}:{self.server.port}{path}"


def fake(server: WebServer) -> OutboundHttpClient:
    def respond(call: RecordedCall) -> tuple[int, dict[str, str], bytes]:
        target = call.target
        headers = {name.lower(): value for name, value in call.headers.items()}
        server.requests.append(
            Request(method=call.method, path=target.path, headers=headers, body=call.body)
        )
        status, answered, body = server.answers.get(target.path, (200, {}, b"fine"))
        return status, dict(answered), body

    return MemoryOutbound(
        policy=policy(server.port), names=NAMES, respond=respond, largest_answer=1000
    )


def real(server: WebServer) -> OutboundHttpClient:
    return HttpOutbound(policy=policy(server.port), resolver=resolver, largest_answer=1000)


@pytest.fixture(params=[fake, real], ids=["memory", "http"])
def setting(request: pytest.FixtureRequest) -> Iterator[Setting]:
    make: Callable[[WebServer], OutboundHttpClient] = request.param
    with web_server() as server:
        yield Setting(outbound=make(server), server=server)


def test_it_is_an_outbound(setting: Setting) -> None:
    assert isinstance(setting.outbound, OutboundHttpClient)


def test_an_answer_comes_back_whole(setting: Setting) -> None:
    setting.server.answers["/hook?a=b"] = (418, {"X-Kind": "teapot"}, "短".encode())
    answer = setting.outbound.post(
        setting.url("/hook?a=b"), body=b'{"x":1}', headers={"Content-Type": "application/json"}
    )
    assert (answer.status, answer.headers["x-kind"], answer.body.decode()) == (418, "teapot", "短")
    assert answer.address == "127.0.0.1"
    (request,) = setting.server.requests
    assert (request.method, request.path, json.loads(request.body)) == (
        "POST",
        "/hook?a=b",
        {"x": 1},
    )
    assert request.headers["content-type"] == "application/json"
    assert request.headers["host"] == f"hooks.example.com:{setting.server.port}"


def test_fetching_sends_no_body(setting: Setting) -> None:
    assert setting.outbound.fetch(setting.url("/x")).body == b"fine"
    assert [(one.method, one.body) for one in setting.server.requests] == [("GET", b"")]


def test_a_redirect_is_an_answer_and_nobody_follows_it(setting: Setting) -> None:
    where = setting.url("/elsewhere")
    setting.server.answers["/old"] = (302, {"Location": where}, b"")
    answer = setting.outbound.fetch(setting.url("/old"))
    assert (answer.status, answer.headers["location"]) == (302, where)
    assert [one.path for one in setting.server.requests] == ["/old"]


@pytest.mark.parametrize("host", ["inside.example.com", "both.example.com", "10.0.0.1"])
def test_one_address_that_may_not_be_called_is_enough_to_refuse(
    setting: Setting, host: str
) -> None:
    with pytest.raises(EgressRefused, match=r"10\.0\.0\.1, which is a private network"):
        setting.outbound.post(setting.url(host=host), body=b"secret")
    assert setting.server.requests == []


def test_what_the_policy_forbids_is_said_without_calling(setting: Setting) -> None:
    setting.outbound.check(setting.url())
    with pytest.raises(EgressRefused, match="port 22"):
        setting.outbound.check("https://hooks.example.com:22/")
    with pytest.raises(EgressRefused, match="port 22"):
        setting.outbound.fetch("https://hooks.example.com:22/")
    assert setting.server.requests == []


def test_a_name_that_nobody_knows_is_a_failure(setting: Setting) -> None:
    with pytest.raises(OutboundFailed, match=r"nobody\.example\.com cannot be resolved"):
        setting.outbound.fetch(setting.url(host="nobody.example.com"))


def test_an_answer_that_is_too_large_is_a_failure(setting: Setting) -> None:
    setting.server.answers["/large"] = (200, {}, b"x" * 1001)
    with pytest.raises(OutboundFailed, match="larger than 1000 bytes"):
        setting.outbound.fetch(setting.url("/large"))


@pytest.fixture
def server() -> Iterator[WebServer]:
    with web_server() as running:
        yield running


def test_an_answer_that_drips_ends_when_time_is_up(server: WebServer) -> None:
    outbound = HttpOutbound(policy=policy(server.port), resolver=resolver, seconds=0.5)
    began = time.monotonic()
    with pytest.raises(OutboundFailed, match=r"within 0\.5 s"):
        outbound.fetch(f"http://hooks.example.com:{server.port}/drip")
    assert time.monotonic() - began < 5


def test_nobody_at_home_is_a_failure() -> None:
    with web_server() as gone:
        port = gone.port
    outbound = HttpOutbound(policy=policy(port), resolver=resolver)
    with pytest.raises(OutboundFailed, match=rf"127\.0\.0\.1, port {port}\) cannot be reached"):
        outbound.fetch(f"http://hooks.example.com:{port}/")


def test_the_second_address_is_tried_where_the_first_is_silent(server: WebServer) -> None:
    # Nobody listens at this one of the machine's own addresses.
    addresses: list[Address] = [IPv4Address("127.0.0.9"), LOOPBACK]
    outbound = HttpOutbound(policy=policy(server.port), resolver=lambda *_: addresses)
    answer = outbound.fetch(f"http://hooks.example.com:{server.port}/")
    assert answer.address == "127.0.0.1"


def test_a_resolver_that_changes_its_mind_gains_nothing(server: WebServer) -> None:
    """The name is resolved once; were it asked again, it would lead inside."""
    asked: list[str] = []

    def rebinding(host: str, port: int) -> Sequence[Address]:
        asked.append(host)
        return [LOOPBACK] if len(asked) == 1 else [ip_address("10.0.0.1")]

    outbound = HttpOutbound(policy=policy(server.port), resolver=rebinding)
    assert outbound.fetch(f"http://hooks.example.com:{server.port}/").address == "127.0.0.1"
    assert asked == ["hooks.example.com"]
    with pytest.raises(EgressRefused):
        outbound.fetch(f"http://hooks.example.com:{server.port}/")


def trusting(certificate: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(certificate))


def test_the_certificate_is_the_names_although_the_address_is_called(tmp_path: Path) -> None:
    certificate = make_certificate(tmp_path / "name.pem", names=("hooks.example.com",))
    with web_server(certificate=certificate) as server:
        outbound = HttpOutbound(
            policy=policy(server.port), resolver=resolver, certificates=trusting(certificate)
        )
        assert outbound.fetch(f"https://hooks.example.com:{server.port}/").status == 200
        assert server.server_names == ["hooks.example.com"]


@pytest.mark.parametrize("names", [("other.example.com",), ("127.0.0.1",)])
def test_a_certificate_of_another_name_is_not_trusted(
    tmp_path: Path, names: tuple[str, ...]
) -> None:
    certificate = make_certificate(tmp_path / "name.pem", names=names)
    with web_server(certificate=certificate) as server:
        outbound = HttpOutbound(
            policy=policy(server.port), resolver=resolver, certificates=trusting(certificate)
        )
        with pytest.raises(
            OutboundFailed, match=r"the certificate of hooks\.example\.com is not trusted"
        ):
            outbound.post(f"https://hooks.example.com:{server.port}/", body=b"secret")
        assert server.requests == []


def test_a_certificate_that_nobody_vouches_for_is_not_trusted(tmp_path: Path) -> None:
    certificate = make_certificate(tmp_path / "own.pem", names=("hooks.example.com",))
    with web_server(certificate=certificate) as server:
        outbound = HttpOutbound(policy=policy(server.port), resolver=resolver)
        with pytest.raises(
            OutboundFailed, match=r"the certificate of hooks\.example\.com is not trusted"
        ):
            outbound.fetch(f"https://hooks.example.com:{server.port}/")


def test_proxies_of_the_environment_are_not_used(
    server: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with web_server() as proxy:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        outbound = HttpOutbound(policy=policy(server.port), resolver=resolver)
        assert outbound.fetch(f"http://hooks.example.com:{server.port}/").status == 200
        assert proxy.requests == []
