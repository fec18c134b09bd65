"""A certificate authority of the test cluster's own, and the API server's certificate."""

from __future__ import annotations

import ipaddress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_VALID = timedelta(days=30)


def write(folder: Path, *, addresses: tuple[str, ...], names: tuple[str, ...]) -> None:
    """``ca.crt``, ``server.crt``, ``server.key``, and ``accounts.key`` that signs service accounts."""
    authority_key, server_key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    authority = _certificate(
        subject="ninefold-test-cluster", key=authority_key, issuer="ninefold-test-cluster"
    ).add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    server = _certificate(
        subject="kube-apiserver", key=server_key, issuer="ninefold-test-cluster"
    ).add_extension(
        x509.SubjectAlternativeName(
            [
                *(x509.IPAddress(ipaddress.ip_address(address)) for address in addresses),
                *(x509.DNSName(name) for name in names),
            ]
        ),
        critical=False,
    )
    for name, builder in (("ca", authority), ("server", server)):
        signed = builder.sign(authority_key, hashes.SHA256())
        (folder / f"{name}.crt").write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    _write_key(folder / "server.key", server_key)
    _write_key(folder / "accounts.key", ec.generate_private_key(ec.SECP256R1()))


def _certificate(
    *, subject: str, key: ec.EllipticCurvePrivateKey, issuer: str
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + _VALID)
    )


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    path.touch(mode=0o600)
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.TraditionalOpenSSL,
            serialization.NoEncryption(),
        )
    )
