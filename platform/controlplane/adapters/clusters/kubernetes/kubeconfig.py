"""Access to a cluster's API: a validated kubeconfig, or the service account of this process's pod.

A kubeconfig is user input: it may name programs to run and files to read on the machine that loads it. Neither
is ever done. Everything must be inline: the authority, and a token, or a client's certificate and its key.
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
    """The kubeconfig cannot be used; the message names the field and what is expected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiAccess:
    """Everything that a client needs to connect to one API server."""

    #: ``https://host:port``, without a path after it unless the server has one.
    server: str
    #: CA certificates in PEM; empty for those of the system.
    authority: str = field(default="", repr=False)
    token: str = field(default="", repr=False)
    #: File from which a token is read for each call; empty for a constant token.
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
        raise KubeconfigRefused(
            "kubeconfig.document.too_large", "the kubeconfig must be at most 256 KiB"
        )
    try:
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        # Without the line itself, which may be the credential.
        mark = getattr(error, "problem_mark", None)
        if mark is None:
            raise KubeconfigRefused(
                "kubeconfig.document.not_yaml", "the kubeconfig is not valid YAML"
            ) from None
        raise KubeconfigRefused(
            "kubeconfig.document.yaml_error",
            "the kubeconfig is not valid YAML: syntax error in line {line}",
            line=mark.line + 1,
        ) from None
    if not isinstance(document, dict):
        raise KubeconfigRefused(
            "kubeconfig.document.not_a_mapping",
            "the kubeconfig must be a mapping with clusters, users and contexts",
        )
    current = str(document.get("current-context") or "")
    if not current:
        raise KubeconfigRefused(
            "kubeconfig.context.missing",
            "the kubeconfig has no current-context; set it to the context to use",
        )
    context = _find_named_entry(document, "contexts", "context", current)
    cluster = _find_named_entry(document, "clusters", "cluster", str(context.get("cluster", "")))
    user = _find_named_entry(document, "users", "user", str(context.get("user", "")))
    _refuse_exec_and_file_credentials(cluster, user)
    certificate = _decode_pem(user, "client-certificate-data")
    key = _decode_pem(user, "client-key-data")
    token = str(user.get("token") or "")
    if bool(certificate) != bool(key):
        raise KubeconfigRefused(
            "kubeconfig.user.incomplete_certificate",
            "client-certificate-data and client-key-data must be set together; one of them is missing",
        )
    if not token and not certificate:
        raise KubeconfigRefused(
            "kubeconfig.user.credential_missing",
            "user {user} has neither a token nor client-certificate-data; the kubeconfig must "
            "contain a credential, such as the token of a service account",
            user=repr(context.get("user")),
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
            "kubeconfig.in_cluster.no_service_account",
            "this process does not run in a pod with a service account; enter a kubeconfig instead",
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
    raise KubeconfigRefused(
        "kubeconfig.entry.not_found",
        "there is no {kind} named {name} in the list {list}",
        kind=one,
        name=repr(name),
        list=many,
    )


def _refuse_exec_and_file_credentials(cluster: Mapping[str, Any], user: Mapping[str, Any]) -> None:
    for word in _PROGRAMS:
        if user.get(word):
            raise KubeconfigRefused(
                "kubeconfig.user.exec_not_allowed",
                "the user has {key}, which runs a program on this host; use a kubeconfig with the "
                "token of a service account, or with client-certificate-data and client-key-data",
                key=repr(word),
            )
    for where, keys in ((user, _FILES), (cluster, ("certificate-authority",))):
        for word in keys:
            if where.get(word):
                raise KubeconfigRefused(
                    "kubeconfig.entry.file_path",
                    "{key} is the path of a file, which does not exist on this host; include its "
                    "content instead: `kubectl config view --raw --flatten`",
                    key=repr(word),
                )
    if cluster.get("insecure-skip-tls-verify"):
        raise KubeconfigRefused(
            "kubeconfig.cluster.insecure",
            "insecure-skip-tls-verify is not allowed because the credential could be intercepted; "
            "set certificate-authority-data instead",
        )
    if cluster.get("proxy-url"):
        raise KubeconfigRefused(
            "kubeconfig.cluster.proxy_not_allowed",
            "proxy-url is not allowed; the API server must be reachable directly",
        )


def _check_server_url(cluster: Mapping[str, Any]) -> str:
    server = str(cluster.get("server") or "").rstrip("/")
    parts = urlsplit(server)
    if parts.scheme != "https" or not parts.hostname or parts.username or parts.query:
        raise KubeconfigRefused(
            "kubeconfig.cluster.invalid_server",
            "the server must be https://host:port without a user name or query, got {server}",
            server=repr(server),
        )
    return server


def _decode_pem(where: Mapping[str, Any], word: str) -> str:
    """PEM out of base64; empty if it is not there."""
    text = str(where.get(word) or "")
    try:
        plain = base64.b64decode(text, validate=True).decode("ascii")
    except (binascii.Error, UnicodeDecodeError) as error:
        raise KubeconfigRefused(
            "kubeconfig.data.not_base64", "{key} is not base64-encoded PEM", key=word
        ) from error
    if plain and "-----BEGIN " not in plain:
        raise KubeconfigRefused(
            "kubeconfig.data.not_pem", "{key} does not contain PEM after decoding", key=word
        )
    return plain
