"""Clients that send too much, too little or too slowly, or leave: each gets its error and leaves nothing open."""

from __future__ import annotations

import json
import select
import socket
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest

from tests.integration.gateway.clients import post, user_message
from tests.integration.gateway.conftest import CREDENTIAL, SECRET, backend_of
from tests.integration.gateway.control_planes import FakeControl, key_of, route_of
from tests.integration.gateway.engines import FakeEngine
from tests.integration.gateway.processes import GatewayProcess
from tests.integration.gateway.servers import wait_until

pytestmark = pytest.mark.slow

PATH = "/v1/chat/completions"
MIB = 1024 * 1024
MAX_BODY = 2 * MIB
MAX_HEADERS = 16 * 1024
LIMITS = {
    "NINEFOLD_GATEWAY_MAX_BODY_BYTES": str(MAX_BODY),
    "NINEFOLD_GATEWAY_BODY_SECONDS": "2",
    "NINEFOLD_MAX_HEADER_BYTES": str(MAX_HEADERS),
    "NINEFOLD_HEADER_SECONDS": "2",
    "NINEFOLD_CLIENT_GRACE_SECONDS": "2",
    "NINEFOLD_CLIENT_MIN_RATE": "1000000",
}
#: A guard against hanging, in seconds; each wait ends as soon as its condition holds.
WITHIN = 120.0
HEADERS = f"Host: gateway\r\nAuthorization: Bearer {SECRET}\r\n"
JSON = f"{HEADERS}Content-Type: application/json\r\n"
HEAD = f"POST {PATH} HTTP/1.1\r\n{JSON}"
FORM_HEAD = f"POST /v1/audio/transcriptions HTTP/1.1\r\n{HEADERS}Content-Type: multipart/form-data; boundary=b\r\n"
#: A form up to the beginning of its file.
FORM = (
    '--b\r\nContent-Disposition: form-data; name="model"\r\n\r\nlistener\r\n'
    '--b\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n\r\nRIFF'
)

Connect = Callable[[bytes], socket.socket]


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """What a gateway and its engine have open."""

    #: Without connections to the engine and the control plane, of which some are kept for further requests.
    files: int
    tasks: int
    open_requests: int
    engine_streams: int
    temporary_files: int

    def exceed(self, other: Resources) -> bool:
        return any(getattr(self, name) > getattr(other, name) for name in self.__slots__)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackedGateway:
    process: GatewayProcess
    engine: FakeEngine
    control: FakeControl
    #: The folder of its temporary files.
    temporary: Path

    def resources(self) -> Resources:
        _, metrics = self.process.get("/metrics")
        values = dict(line.rsplit(" ", 1) for line in metrics.splitlines() if line[0] != "#")
        files = len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))
        return Resources(
            files=files - self.engine.open_connections - self.control.open_connections,
            tasks=int(values["ninefold_gateway_tasks"]),
            open_requests=int(values["ninefold_gateway_open_requests"]),
            engine_streams=self.engine.open_streams,
            temporary_files=len(list(self.temporary.iterdir())),
        )

    def peak_memory(self) -> int:
        """The most memory, in bytes, that the process has had since :meth:`reset_peak_memory`."""
        return self._memory("VmHWM")

    def reset_peak_memory(self) -> int:
        """The memory, in bytes, from which the peak is measured."""
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")
        return self._memory("VmRSS")

    def _memory(self, name: str) -> int:
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))

    def answers(self) -> bool:
        """Whether a usual request is answered; on a busy machine it may itself be too slow once."""
        body = {"model": "parser", "messages": user_message("hi")}
        return post(self.process, body)[0] == 200


@pytest.fixture(scope="module")
def hostile_gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AttackedGateway]:
    """One gateway with short limits for all tests; in the end not even idle connections are left."""
    engine = FakeEngine(credential=CREDENTIAL).start()
    control = FakeControl().start()
    backend = backend_of(engine.url)
    routes = [
        route_of("parser", backend),
        route_of("listener", backend, operations=["transcriptions"]),
    ]
    control.publish(routes=routes, keys=[key_of(SECRET)])
    temporary = tmp_path_factory.mktemp("temporary")
    process = GatewayProcess(
        home=tmp_path_factory.mktemp("gateway"),
        control_url=control.url,
        TMPDIR=str(temporary),
        **LIMITS,
    )
    try:
        process.start()
        gateway = AttackedGateway(
            process=process, engine=engine, control=control, temporary=temporary
        )
        before = gateway.resources()
        yield gateway
        wait_until(
            lambda: not engine.open_connections and not gateway.resources().exceed(before),
            seconds=WITHIN,
            what="the resources of a gateway without requests",
        )
        assert "Traceback" not in process.log.read_text()
    finally:
        process.stop()
        control.stop()
        engine.stop()


@pytest.fixture
def attacked(hostile_gateway: AttackedGateway) -> Iterator[AttackedGateway]:
    """A gateway that answers when the test is over, and has nothing open that it did not have before."""
    gateway = hostile_gateway
    gateway.engine.bodies.clear()
    gateway.engine.cancelled = 0
    before = gateway.resources()
    yield gateway
    wait_until(gateway.answers, seconds=WITHIN, what="an answer")
    try:
        wait_until(
            lambda: not gateway.resources().exceed(before), seconds=WITHIN, what="a gateway at rest"
        )
    except AssertionError:
        pytest.fail(f"left over: {gateway.resources()}; before: {before}")


@pytest.fixture
def connect(attacked: AttackedGateway) -> Iterator[Connect]:
    """Opens a connection and sends bytes; all are closed before resources are counted."""
    with ExitStack() as stack:

        def open_connection(sent: bytes) -> socket.socket:
            client = stack.enter_context(socket.socket())
            client.settimeout(WITHIN)
            # Otherwise the kernel would take megabytes of a response on the client's behalf.
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.connect(("127.0.0.1", attacked.process.port))
            try:
                client.sendall(sent)
            except (BrokenPipeError, ConnectionResetError):
                # Refused before the end of it; the response can be read.
                pass
            return client

        yield open_connection


def response(client: socket.socket) -> tuple[int, Any]:
    """The status and the error of the only response, with which the server closes the connection."""
    content = bytearray()
    try:
        while part := client.recv(65536):
            content += part
    except ConnectionResetError:
        pass
    head, _, body = bytes(content).partition(b"\r\n\r\n")
    assert head, "closed without a response"
    assert b"content-type: application/json" in head.lower()
    return int(head.split()[1]), json.loads(body)["error"]


def test_slow_headers_and_idle_connections(attacked: AttackedGateway, connect: Connect) -> None:
    idle = [connect(b"") for _ in range(300)]
    slow = [connect(f"POST {PATH} HTTP/1.1\r\nHost: ga".encode()) for _ in range(50)]
    assert attacked.answers()
    for client in (*idle, *slow):
        status, error = response(client)
        assert (status, error["code"]) == (408, "headers_timeout")
        assert error["type"] == "invalid_request_error"


def test_a_body_that_stalls(attacked: AttackedGateway, connect: Connect) -> None:
    clients = [connect(f'{HEAD}Content-Length: 1000\r\n\r\n{{"model":'.encode()) for _ in range(50)]
    chunked = connect(f"{HEAD}Transfer-Encoding: chunked\r\n\r\n5\r\n".encode())
    assert attacked.answers()
    for client in (*clients, chunked):
        status, error = response(client)
        assert (status, error["code"]) == (408, "request_timeout")


def drip(clients: Collection[socket.socket]) -> None:
    """Send a byte on each connection again and again, until it has a response."""
    waiting = set(clients)

    def are_answered() -> bool:
        waiting.difference_update(select.select(waiting, (), (), 0)[0])
        for client in waiting:
            with suppress(BrokenPipeError, ConnectionResetError):
                client.sendall(b"a")
        return not waiting

    wait_until(are_answered, seconds=WITHIN, what="a response to each client that drips")


def test_headers_and_bodies_that_drip(attacked: AttackedGateway, connect: Connect) -> None:
    """A byte now and then extends neither the time of headers nor that of a body."""
    headers = [connect(f"{HEAD}X-Slow: ".encode()) for _ in range(20)]
    bodies = [
        connect(f"{head}{framing}\r\n\r\n{begin}".encode())
        for head, content in ((HEAD, '{"model": "'), (FORM_HEAD, FORM))
        for framing, begin in (
            ("Content-Length: 100000", content),
            ("Transfer-Encoding: chunked", f"ffff\r\n{content}"),
        )
        for _ in range(10)
    ]
    drip([*headers, *bodies])
    for code, clients in (("headers_timeout", headers), ("request_timeout", bodies)):
        for client in clients:
            status, error = response(client)
            assert (status, error["code"]) == (408, code)
    assert attacked.engine.bodies == []


def test_a_body_has_its_time_at_any_rate(
    attacked: AttackedGateway, connect: Connect, tmp_path: Path
) -> None:
    """Where the limit of slow clients is far away, ``NINEFOLD_GATEWAY_BODY_SECONDS`` ends the request."""
    limits = {"NINEFOLD_GATEWAY_BODY_SECONDS": "1", "NINEFOLD_CLIENT_GRACE_SECONDS": "3600"}
    process = GatewayProcess(home=tmp_path, control_url=attacked.control.url, **limits)
    try:
        process.start()
        for head, begin in ((HEAD, '{"model": "'), (FORM_HEAD, FORM)):
            sent = f"{head}Content-Length: 100000\r\n\r\n{begin}".encode()
            with socket.create_connection(("127.0.0.1", process.port), WITHIN) as client:
                client.sendall(sent)
                drip([client])
                # The rest of the body would still be discarded.
                client.shutdown(socket.SHUT_WR)
                status, error = response(client)
            assert (status, error["code"]) == (408, "request_timeout")
            assert error["message"] == "The body did not arrive within 1 s."
    finally:
        process.stop()


def test_the_rest_of_a_request_that_has_been_refused(
    attacked: AttackedGateway, connect: Connect
) -> None:
    """Neither a byte now and then nor a body without an end keeps the connection open."""
    stranger = HEAD.replace(SECRET, "sk-wrong")
    clients = [
        connect(f"{head}{framing}\r\n\r\n{begin}".encode())
        for head, framing, begin in (
            (HEAD, f"Content-Length: {100 * MIB}", ""),
            (stranger, f"Content-Length: {100 * MIB}", ""),
            (stranger, "Transfer-Encoding: chunked", "ffffffff\r\n"),
        )
        for _ in range(10)
    ]
    statuses = [int(client.recv(4096).split()[1]) for client in clients]
    assert statuses == [413] * 10 + [401] * 20
    left = set(clients)

    def are_closed() -> bool:
        for client in tuple(left):
            try:
                # More than NINEFOLD_CLIENT_MIN_RATE, or much less.
                client.send(b"x" * (MIB if client in clients[::2] else 1), socket.MSG_DONTWAIT)
            except BlockingIOError:
                pass
            except (BrokenPipeError, ConnectionResetError):
                left.discard(client)
        return not left

    wait_until(are_closed, seconds=WITHIN, what="the end of each connection")


def test_a_client_that_reads_only_after_its_body_gets_the_response(
    attacked: AttackedGateway, tmp_path: Path
) -> None:
    """A connection that is closed with unread data is reset, and the response would be lost."""
    process = GatewayProcess(
        home=tmp_path,
        control_url=attacked.control.url,
        **LIMITS | {"NINEFOLD_CLIENT_GRACE_SECONDS": str(WITHIN)},
    )
    stranger = HEAD.replace(SECRET, "sk-wrong")
    closing_stranger = stranger.replace("Host", "Connection: close\r\nHost")
    nowhere = HEAD.replace(PATH, "/v1/nowhere")
    size = 64 * MIB
    try:
        process.start()
        for head, status in ((HEAD, 413), (stranger, 401), (closing_stranger, 401), (nowhere, 404)):
            for framing in (f"Content-Length: {size}", "Transfer-Encoding: chunked"):
                content = b"x" * size
                if "chunked" in framing:
                    content = f"{size:x}\r\n".encode() + content + b"\r\n0\r\n\r\n"
                with socket.create_connection(("127.0.0.1", process.port), WITHIN) as client:
                    client.sendall(f"{head}{framing}\r\n\r\n".encode() + content)
                    if status != 413 and head is not closing_stranger:
                        # The connection is still usable.
                        client.sendall(
                            f"GET / HTTP/1.1\r\nConnection: close\r\n{HEADERS}\r\n".encode()
                        )
                    received = b"".join(iter(lambda: client.recv(65536), b""))
                first, _, rest = received.partition(b"\r\n\r\n")
                assert int(first.split()[1]) == status, framing
                length = int(first.lower().partition(b"content-length: ")[2].split()[0])
                assert "error" in json.loads(rest[:length])
                further = rest[length:].split()[1:2]
                assert further == ([] if b"connection: close" in first else [b"404"])
    finally:
        process.stop()


def test_a_form_that_is_too_large_or_ends_early(
    attacked: AttackedGateway, connect: Connect
) -> None:
    for framing in (f"Content-Length: {MAX_BODY + MIB}", "Transfer-Encoding: chunked"):
        content = FORM.encode() + b"x" * (MAX_BODY + MIB - len(FORM))
        if "chunked" in framing:
            content = f"{len(content):x}\r\n".encode() + content
        status, error = response(connect(f"{FORM_HEAD}{framing}\r\n\r\n".encode() + content))
        assert (status, error["code"]) == (413, "request_too_large")
        assert str(MAX_BODY) in error["message"]
    for _ in range(20):
        # In the content of the file, in the headers of its part, and before the end of the form.
        for begin in (FORM + "x" * 50_000, FORM[:-20], f"{FORM}x\r\n--b"):
            for framing in (
                "Content-Length: 100000\r\n\r\n",
                "Transfer-Encoding: chunked\r\n\r\nfffff\r\n",
            ):
                connect(f"{FORM_HEAD}{framing}{begin}".encode()).close()
    assert attacked.engine.bodies == []


def test_a_client_that_leaves_in_the_middle_of_its_body(
    attacked: AttackedGateway, connect: Connect
) -> None:
    for _ in range(50):
        connect(f'{HEAD}Content-Length: 100000\r\n\r\n{{"model": "par'.encode()).close()
        connect(f"{HEAD}Transfer-Encoding: chunked\r\n\r\nffff\r\nabc".encode()).close()
        # Half-closed: the rest of the body can never come.
        half = connect(f"{HEAD}Content-Length: 100000\r\n\r\n{{".encode())
        half.shutdown(socket.SHUT_WR)
        assert half.recv(1) == b""
    assert attacked.engine.bodies == []


def test_a_prompt_of_100_mb(attacked: AttackedGateway, connect: Connect) -> None:
    begin = attacked.reset_peak_memory()
    content = b'{"model": "parser", "messages": [{"role": "user", "content": "' + b"x" * 100 * MIB
    for framing in ("Content-Length: 104857700", "Transfer-Encoding: chunked"):
        head = f"{HEAD}{framing}\r\n\r\n"
        if "chunked" in framing:
            head += "6400000\r\n"
        clients = [connect(head.encode() + content) for _ in range(4)]
        for client in clients:
            status, error = response(client)
            assert (status, error["code"]) == (413, "request_too_large")
            assert str(MAX_BODY) in error["message"]
    # Without a key nothing is read into memory either.
    stranger = HEAD.replace(SECRET, "sk-wrong").replace("Host", "Connection: close\r\nHost")
    client = connect(f"{stranger}Content-Length: 104857700\r\n\r\n".encode() + content)
    assert response(client)[0] == 401
    assert attacked.peak_memory() - begin < 16 * MAX_BODY
    with pytest.raises(openai.APIStatusError, match="larger than") as refused:
        attacked.process.client(SECRET).chat.completions.create(
            model="parser", messages=user_message("x" * 100 * MIB)
        )
    assert refused.value.status_code == 413


@pytest.mark.parametrize(
    "headers",
    [
        "".join(f"X-{number}: a\r\n" for number in range(50_000)),
        f"X-Long: {'a' * 500_000}\r\n",
        # Small enough for one read of the server.
        f"X-Long: {'a' * 2 * MAX_HEADERS}\r\n",
        "".join(f"X-{number}: a\r\n" for number in range(3_000)),
        "X" * 100_000,
    ],
    ids=["many headers", "a long header", "a header in one read", "headers in one read", "no end"],
)
def test_headers_that_are_too_large(
    attacked: AttackedGateway, connect: Connect, headers: str
) -> None:
    begin = attacked.reset_peak_memory()
    body = json.dumps({"model": "parser", "messages": user_message("hi")})
    sent = f"{HEAD}{headers}Content-Length: {len(body)}\r\n\r\n{body}".encode()
    for client in [connect(sent) for _ in range(10)]:
        status, error = response(client)
        assert (status, error["code"]) == (431, "headers_too_large")
        assert str(MAX_HEADERS) in error["message"]
    assert response(connect(f"GET /{'a' * 100_000} HTTP/1.1\r\n{HEADERS}\r\n".encode()))[0] == 431
    assert attacked.peak_memory() - begin < 64 * MIB


def test_requests_that_are_not_http(attacked: AttackedGateway, connect: Connect) -> None:
    for sent in (
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 a TLS handshake",
        b"GET / HTTP/9.9\r\n\r\n",
        f"{HEAD}Content-Length: -1\r\n\r\n".encode(),
        f"{HEAD}Content-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef".encode(),
        f"{HEAD}Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n".encode(),
        f"{HEAD}Transfer-Encoding: chunked\r\n\r\nzz\r\n".encode(),
    ):
        status, error = response(connect(sent))
        assert (status, error["code"]) == (400, "invalid_http"), sent
    assert attacked.engine.bodies == []


@pytest.mark.parametrize("value", ["[", '{"a":', '"a",'], ids=["lists", "objects", "items"])
def test_json_of_every_depth_and_width(attacked: AttackedGateway, value: str) -> None:
    """Depths around every limit of parsers and encoders: an answer or 400, never an error of the gateway."""
    close = {"[": "]", '{"a":': "}", '"a",': ""}[value]
    statuses = set()
    for depth in (10, 200, 300, 450, 480, 500, *range(900, 1020, 5), 2000, 100_000):
        nested = value * depth + "0" + close * depth
        nested = nested if close else f"[{nested}]"
        for field in (
            f'"messages": [{{"role": "user", "content": "hi"}}], "extra": {nested}',
            f'"messages": [{{"role": "user", "extra": {nested}, "content": "hi"}}]',
        ):
            status, _, answer = post(attacked.process, f'{{"model": "parser", {field}}}'.encode())
            assert status in (200, 400), (depth, answer)
            statuses.add(status)
    assert 200 in statuses


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
def test_a_client_that_leaves_before_the_first_byte(
    attacked: AttackedGateway, connect: Connect, stream: bool
) -> None:
    """Silent streams have sent no event, silent answers nothing."""
    content = {"model": "parser", "messages": user_message("silent"), "stream": stream}
    body = json.dumps(content)
    sent = f"{HEAD}Content-Length: {len(body)}\r\n\r\n{body}".encode()
    clients = [connect(sent) for _ in range(20)]
    wait_until(lambda: len(attacked.engine.bodies) == 20, seconds=WITHIN, what="the requests")
    assert attacked.resources().open_requests == 20
    for client in clients:
        client.close()
    wait_until(
        lambda: attacked.engine.cancelled == 20, seconds=WITHIN, what="the engine to be left"
    )


def test_a_client_that_leaves_in_the_middle_of_a_stream(attacked: AttackedGateway) -> None:
    for _ in range(20):
        with attacked.process.client(SECRET) as client:
            stream = client.chat.completions.create(
                model="parser", messages=user_message("endless"), stream=True
            )
            with closing(stream):
                next(iter(stream))
    wait_until(
        lambda: attacked.engine.cancelled == 20, seconds=WITHIN, what="the engine to be left"
    )


def test_a_client_that_does_not_read_its_stream(
    attacked: AttackedGateway, connect: Connect
) -> None:
    begin = attacked.reset_peak_memory()
    body = json.dumps(
        {"model": "parser", "messages": user_message("words 1000000"), "stream": True}
    )
    for _ in range(2):
        connect(f"{HEAD}Content-Length: {len(body)}\r\n\r\n{body}".encode())
    wait_until(lambda: attacked.engine.cancelled == 2, seconds=WITHIN, what="the engine to be left")
    assert attacked.peak_memory() - begin < 64 * MIB


def test_json_that_would_take_many_times_its_size_in_memory(attacked: AttackedGateway) -> None:
    begin = attacked.reset_peak_memory()
    message = b'"messages": [{"role": "user", "content": "hi"}]'
    status, _, answer = post(
        attacked.process, b'{"model": "parser", %s, "x": [%s0]}' % (message, b"[]," * 500_000)
    )
    assert (status, answer["error"]["code"]) == (413, "request_too_large")
    # The same brackets in a text are a prompt.
    text = b'[{}\\"' * 200_000
    body = b'{"model": "parser", "messages": [{"role": "user", "content": "%s"}]}'
    assert post(attacked.process, body % text)[0] == 200
    # A place that is 1 MB long, for each of 100,000 strings.
    wide = b'{"model": "parser", %s, "%s": [%s"\\ud83d"]}'
    status, _, answer = post(
        attacked.process, wide % (message, b"k" * MIB, b'"\\uD83D\\uDE00",' * 50_000)
    )
    assert (status, answer["error"]["code"]) == (400, "invalid_unicode")
    assert attacked.peak_memory() - begin < 64 * MIB


def test_requests_in_a_row_on_one_connection(attacked: AttackedGateway, connect: Connect) -> None:
    """A pipeline of requests, of which none of the responses is read before all are sent."""
    body = json.dumps({"model": "parser", "messages": user_message("hi")})
    one = f"{HEAD}Content-Length: {len(body)}\r\n\r\n{body}".encode()
    client = connect(one * 199 + one.replace(b"Host", b"Connection: close\r\nHost"))
    content = b"".join(iter(lambda: client.recv(65536), b""))
    assert content.count(b"HTTP/1.1 200 OK") == 200


def test_official_client_reads_the_errors_of_the_server_itself(attacked: AttackedGateway) -> None:
    """They are sent before the application sees the request."""
    client = attacked.process.client(SECRET)
    with pytest.raises(openai.APIStatusError, match="longer than") as refused:
        client.models.list(extra_headers={"X-Long": "a" * 3 * MAX_HEADERS})
    assert refused.value.status_code == 431
    assert isinstance(refused.value.body, dict)
    assert refused.value.body["code"] == "headers_too_large"
    with httpx.Client(base_url=attacked.process.url) as plain:
        answer = plain.request("TRACE", "/v1/models")
    assert (answer.status_code, answer.json()["error"]["code"]) == (405, "method_not_allowed")
