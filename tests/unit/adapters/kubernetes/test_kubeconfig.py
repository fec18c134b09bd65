"""A kubeconfig is somebody's text: what it would run or read here is refused by name."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from controlplane.adapters.clusters.kubernetes.kubeconfig import (
    KubeconfigRefused,
    from_kubeconfig,
    in_cluster_access,
)

PEM = base64.b64encode(b"-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----\n").decode()


def config() -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "work",
        "contexts": [{"name": "work", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [
            {
                "name": "c",
                "cluster": {"server": "https://10.0.0.1:6443", "certificate-authority-data": PEM},
            }
        ],
        "users": [{"name": "u", "user": {"token": "secret-token"}}],
    }


def test_a_kubeconfig_with_a_token_is_read_and_its_secrets_are_never_printed() -> None:
    access = from_kubeconfig(yaml.safe_dump(config()))
    assert (access.server, access.token) == ("https://10.0.0.1:6443", "secret-token")
    assert access.authority.startswith("-----BEGIN")
    assert "secret-token" not in repr(access)


def user(**values: object) -> Callable[[dict[str, Any]], None]:
    return lambda found: found["users"][0].update(user=values)


def cluster(**values: object) -> Callable[[dict[str, Any]], None]:
    return lambda found: found["clusters"][0]["cluster"].update(
        {name.replace("_", "-"): value for name, value in values.items()}
    )


REFUSED: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "a program": (user(exec={"command": "aws"}, token="x"), "'exec', which runs a program"),
    "an auth provider": (user(**{"auth-provider": {"name": "gcp"}}), "auth-provider"),
    "a token in a file": (user(tokenFile="/etc/token"), "the path of a file"),
    "a certificate in a file": (user(**{"client-certificate": "/a.crt"}), "the path of a file"),
    "an authority in a file": (cluster(certificate_authority="/ca.crt"), "--flatten"),
    "no verification": (cluster(insecure_skip_tls_verify=True), "insecure-skip-tls-verify"),
    "a proxy": (cluster(proxy_url="http://proxy"), "proxy-url"),
    "plain HTTP": (cluster(server="http://10.0.0.1:8080"), "must be https://host:port"),
    "a server with a password": (cluster(server="https://a:b@host"), "must be https://host:port"),
    "no credential": (user(username="me"), "neither a token nor client-certificate-data"),
    "a certificate without its key": (
        user(**{"client-certificate-data": PEM}),
        "must be set together",
    ),
    "an authority that is no PEM": (
        cluster(certificate_authority_data=base64.b64encode(b"abc").decode()),
        "does not contain PEM",
    ),
    "base64 that is none": (cluster(certificate_authority_data="%%%"), "not base64"),
    "an unknown context": (
        lambda found: found.update({"current-context": "other"}),
        "no context named 'other'",
    ),
    "no context": (lambda found: found.pop("current-context"), "no current-context"),
}


@pytest.mark.parametrize(("change", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_what_would_run_or_read_something_here_is_refused_by_name(
    change: Callable[[dict[str, Any]], None], message: str
) -> None:
    found = config()
    change(found)
    with pytest.raises(KubeconfigRefused, match=message):
        from_kubeconfig(yaml.safe_dump(found))


@pytest.mark.parametrize("text", ["", "- a\n- b", "a: [", "x" * 300_000])
def test_what_is_no_kubeconfig_is_refused(text: str) -> None:
    with pytest.raises(KubeconfigRefused):
        from_kubeconfig(text)


def test_a_line_that_is_no_yaml_is_named_and_never_quoted() -> None:
    text = "users:\n- user: {token: eyJhbGciOi.SECRET: broken"
    with pytest.raises(KubeconfigRefused, match="error in line 2") as refused:
        from_kubeconfig(text)
    assert "SECRET" not in str(refused.value)


def test_inside_of_a_cluster_the_pods_account_is_used(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("of-the-pod")
    (tmp_path / "ca.crt").write_text("-----BEGIN CERTIFICATE-----\n")
    variables = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    access = in_cluster_access(variables, account=tmp_path)
    assert access.server == "https://[fd00::1]:443"
    assert access.token_file == str(tmp_path / "token")
    with pytest.raises(KubeconfigRefused, match="not run in a pod with a service account"):
        in_cluster_access({}, account=tmp_path)
