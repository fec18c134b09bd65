"""A small server of the world outside, on loopback, that remembers who called it and how."""

from __future__ import annotations

import datetime as dt
import random
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(slots=True, kw_only=True)
class WebServer:
    port: int
    requests: list[Request] = field(default_factory=list)
    #: What the next calls are answered with: status, headers, body; by path.
    answers: dict[str, tuple[int, Mapping[str, str], bytes]] = field(default_factory=dict)
    #: Names that clients said they wanted to reach, by TLS.
    server_names: list[str | None] = field(default_factory=list)
    #: Set to let an answer that drips come to its end.
    over: threading.Event = field(default_factory=threading.Event)


def _handler(server: WebServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            request = Request(
                method=self.command,
                path=self.path,
                headers={name.lower(): value for name, value in self.headers.items()},
                body=self.rfile.read(length),
            )
            server.requests.append(request)
            if self.path == "/drip":
                self._drip()
                return
            status, headers, body = server.answers.get(self.path, (200, {}, b"fine"))
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def _drip(self) -> None:
            """One byte now and then, for as long as somebody listens."""
            self.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
            while not server.over.wait(0.05):
                try:
                    self.wfile.write(b".")
                except OSError:
                    return

        do_GET = do_POST = _answer  # noqa: N815 - named by the standard library

        def log_message(self, *_args: Any) -> None:
            """Be quiet."""

    return Handler


def _bound(state: WebServer) -> ThreadingHTTPServer:
    """A server on a port that the kernel hands to nobody.

    A port of the ephemeral range may have been the web of a product that another test has just stopped, and
    the product's agent still sends there.
    """
    for _attempt in range(100):
        try:
            return ThreadingHTTPServer(
                ("127.0.0.1", random.randint(20_000, 32_000)), _handler(state)
            )
        except OSError:
            continue
    raise AssertionError("no free port between 20000 and 32000")


@contextmanager
def web_server(*, certificate: Path | None = None) -> Iterator[WebServer]:
    """On a free port of 127.0.0.1; with TLS if there is a certificate."""
    state = WebServer(port=0)
    server = _bound(state)
    state.port = server.server_address[1]
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        context.sni_callback = lambda _socket, name, _context: state.server_names.append(name)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield state
    finally:
        state.over.set()
        server.shutdown()
        server.server_close()
        thread.join()


def make_certificate(path: Path, *, names: tuple[str, ...]) -> Path:
    """A file with a key and a certificate that signs itself, for those names."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([_name(one) for one in names]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    return path


@dataclass(frozen=True, slots=True)
class CompanyAuthority:
    """A certificate authority that no system knows, and a server's certificate that it signed, as PEM files."""

    certificate: Path
    #: With its key.
    server: Path


def make_authority(folder: Path, *, names: tuple[str, ...]) -> CompanyAuthority:
    """An authority, and a certificate of it for a server with those names."""
    found = CompanyAuthority(folder / "authority.pem", folder / "server.pem")
    authority, server = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Company authority")])
    identifier = x509.SubjectKeyIdentifier.from_public_key(authority.public_key())
    usage = dict.fromkeys(
        (
            "content_commitment",
            "key_encipherment",
            "data_encipherment",
            "key_agreement",
            "encipher_only",
            "decipher_only",
        ),
        False,
    )
    now = dt.datetime.now(dt.UTC)
    pair: tuple[tuple[ec.EllipticCurvePrivateKey, str, bool], ...] = (
        (authority, "Company authority", True),
        (server, names[0], False),
    )
    signed = []
    for key, name, is_authority in pair:
        builder = (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
            .issuer_name(issuer)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(hours=1))
            .not_valid_after(now + dt.timedelta(hours=1))
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
            .add_extension(
                x509.KeyUsage(
                    digital_signature=not is_authority,
                    key_cert_sign=is_authority,
                    crl_sign=is_authority,
                    **usage,
                ),
                critical=True,
            )
            .add_extension(
                x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
            )
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier),
                critical=False,
            )
        )
        if not is_authority:
            builder = builder.add_extension(
                x509.SubjectAlternativeName([_name(one) for one in names]), critical=False
            )
        signed.append(
            builder.sign(authority, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
        )
    found.certificate.write_bytes(signed[0])
    found.server.write_bytes(
        server.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + signed[1]
    )
    return found


def _name(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(text))
    except ValueError:
        return x509.DNSName(text)
