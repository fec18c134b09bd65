"""How a cluster's API is reached: a kubeconfig that was vetted, or the account of the pod that we run in.

A kubeconfig is somebody's text: it may name programs to run and files to read on the machine that loads it.
Neither is ever done. What is needed must stand in it: the authority, and a token, or a client's certificate
and its key.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from controlplane.ports.clusters import CredentialRefused

#: Where Kubernetes puts the account of a pod.
_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_LARGEST = 256 * 1024
#: Words of a user that let the loader run a program or read a file.
_PROGRAMS = ("exec", "auth-provider")
_FILES = ("tokenFile", "client-certificate", "client-key")


class KubeconfigRefused(CredentialRefused):
    """It cannot be used as it is; the message names the field and what would be right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiAccess:
    """Everything that a client needs to connect to one API server."""

    #: ``https://host:port``, without a path after it unless the server has one.
    server: str
    #: CA certificates in PEM; empty for those of the system.
    authority: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    #: Where a token is read anew for each call; empty where it never changes.
    token_file: str = ""
    #: PEM of the client and of its key; both or neither.
    certificate: str = field(default="", repr=False)
    key: str = field(default="", repr=False)
    #: The name that the server's certificate bears, if not the host's.
    server_name: str = ""


def from_kubeconfig(text: str) -> ApiAccess:
    """The access of its current context.

    :raises KubeconfigRefused: if it is no kubeconfig, is incomplete, or refers to exec plug-ins or files.
    """
    if len(text.encode()) > _LARGEST:
        raise KubeconfigRefused("this is larger than 256 KiB: it is no kubeconfig")
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        # Without the line itself, which may be the credential.
        mark = getattr(error, "problem_mark", None)
        where = f" in line {mark.line + 1}" if mark is not None else ""
        raise KubeconfigRefused(f"this is no YAML: there is an error{where}") from None
    if not isinstance(document, dict):
        raise KubeconfigRefused("a kubeconfig is a mapping with clusters, users and contexts")
    current = str(document.get("current-context") or "")
    if not current:
        raise KubeconfigRefused("it has no current-context: say which context is meant")
    context = _find_named_entry(document, "contexts", "context", current)
    cluster = _find_named_entry(document, "clusters", "cluster", str(context.get("cluster", "")))
    user = _find_named_entry(document, "users", "user", str(context.get("user", "")))
    _refuse_exec_and_file_credentials(cluster, user)
    certificate = _decode_pem(user, "client-certificate-data")
    key = _decode_pem(user, "client-key-data")
    token = str(user.get("token") or "")
    if bool(certificate) != bool(key):
        raise KubeconfigRefused(
            "client-certificate-data and client-key-data belong together; one of them is missing"
        )
    if not token and not certificate:
        raise KubeconfigRefused(
            f"user {context.get('user')!r} has neither a token nor client-certificate-data: "
            "Ninefold needs a credential that stands in the file, such as a service account's token"
        )
    return ApiAccess(
        server=_check_server_url(cluster),
        authority=_decode_pem(cluster, "certificate-authority-data"),
        token=token,
        certificate=certificate,
        key=key,
        server_name=str(cluster.get("tls-server-name") or ""),
    )


def in_cluster_access(environment: Mapping[str, str], *, account: Path = _ACCOUNT) -> ApiAccess:
    """The account of the pod that this process runs in.

    :raises KubeconfigRefused: if it runs in no pod, or in one without an account.
    """
    host = environment.get("KUBERNETES_SERVICE_HOST", "")
    port = environment.get("KUBERNETES_SERVICE_PORT", "443")
    if not host or not (account / "token").exists():
        raise KubeconfigRefused(
            "this process runs in no pod with a service account: give a kubeconfig instead"
        )
    shown = f"[{host}]" if ":" in host else host
    return ApiAccess(
        server=f"https://{shown}:{port}",
        authority=(account / "ca.crt").read_text(encoding="ascii"),
        token_file=str(account / "token"),
    )


def _find_named_entry(
    document: Mapping[str, Any], many: str, one: str, name: str
) -> Mapping[str, Any]:
    entries = document.get(many)
    for entry in entries if isinstance(entries, list) else []:
        found = entry.get(one) if isinstance(entry, dict) and entry.get("name") == name else None
        if isinstance(found, dict):
            return found
    raise KubeconfigRefused(f"there is no {one} called {name!r} among its {many}")


def _refuse_exec_and_file_credentials(cluster: Mapping[str, Any], user: Mapping[str, Any]) -> None:
    for word in _PROGRAMS:
        if user.get(word):
            raise KubeconfigRefused(
                f"its user has {word!r}, which would run a program here: give a kubeconfig with a token of a "
                "service account, or with client-certificate-data and client-key-data"
            )
    for where, keys in ((user, _FILES), (cluster, ("certificate-authority",))):
        for word in keys:
            if where.get(word):
                raise KubeconfigRefused(
                    f"it has {word!r}, the path of a file that lies on another machine: put the content in, "
                    f"as `kubectl config view --raw --flatten` does"
                )
    if cluster.get("insecure-skip-tls-verify"):
        raise KubeconfigRefused(
            "it has insecure-skip-tls-verify: anybody in between could read the credential; "
            "put certificate-authority-data in"
        )
    if cluster.get("proxy-url"):
        raise KubeconfigRefused(
            "it has a proxy-url: the product's own egress settings decide on proxies"
        )


def _check_server_url(cluster: Mapping[str, Any]) -> str:
    server = str(cluster.get("server") or "").rstrip("/")
    parts = urlsplit(server)
    if parts.scheme != "https" or not parts.hostname or parts.username or parts.query:
        raise KubeconfigRefused(
            f"its server is {server!r}; it must be https://host:port, as a credential goes there"
        )
    return server


def _decode_pem(where: Mapping[str, Any], word: str) -> str:
    """PEM out of base64; empty if it is not there."""
    text = str(where.get(word) or "")
    try:
        plain = base64.b64decode(text, validate=True).decode("ascii")
    except (binascii.Error, UnicodeDecodeError) as error:
        raise KubeconfigRefused(f"{word} is not base64 of a PEM text") from error
    if plain and "-----BEGIN " not in plain:
        raise KubeconfigRefused(f"{word} holds no PEM text after decoding")
    return plain
