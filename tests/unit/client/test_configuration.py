from __future__ import annotations

from pathlib import Path

import pytest

from ninefold_client.configuration import (
    Configuration,
    Context,
    configuration_path,
    load_configuration,
    resolve_credentials,
    save_configuration,
)
from ninefold_client.errors import ConfigurationError

MAPS = Context(url="https://maps.example", token="nfp-maps")
LAB = Context(url="https://lab.example", token="nfp-lab")


@pytest.fixture
def stored(tmp_path: Path) -> dict[str, str]:
    """The environment of a user with two contexts; the second one is current."""
    path = tmp_path / "ninefold" / "config.yaml"
    configuration = Configuration().with_context("maps", MAPS).with_context("lab", LAB)
    save_configuration(configuration, path=path)
    return {"NINEFOLD_CONFIG": str(path)}


def test_the_file_is_private_and_reads_back(stored: dict[str, str]) -> None:
    path = Path(stored["NINEFOLD_CONFIG"])
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(path.parent.iterdir()) == [path]
    found = load_configuration(path)
    assert (found.current, dict(found.contexts)) == ("lab", {"maps": MAPS, "lab": LAB})
    assert found.without_context("lab").current == "maps"
    assert "nfp-lab" not in repr(found)


def test_a_file_that_others_may_read_is_refused_with_the_fix(stored: dict[str, str]) -> None:
    path = Path(stored["NINEFOLD_CONFIG"])
    path.chmod(0o640)
    with pytest.raises(ConfigurationError, match=r"has mode 0640 .* Run: chmod 600"):
        load_configuration(path)


@pytest.mark.parametrize("content", ["contexts: [1]", "contexts: {a: {url: x}}", "{", "[1]"])
def test_an_invalid_file_is_named(stored: dict[str, str], content: str) -> None:
    path = Path(stored["NINEFOLD_CONFIG"])
    path.write_text(content)
    with pytest.raises(ConfigurationError, match="not a valid configuration"):
        load_configuration(path)


def test_arguments_precede_the_environment_and_that_the_file(stored: dict[str, str]) -> None:
    assert resolve_credentials(environ=stored).url == LAB.url
    assert resolve_credentials(environ=stored, context="maps").token == MAPS.token
    assert resolve_credentials(environ={**stored, "NINEFOLD_CONTEXT": "maps"}).url == MAPS.url
    given = {**stored, "NINEFOLD_URL": "http://here:8000/", "NINEFOLD_TOKEN": "nfp-env"}
    assert resolve_credentials(environ=given).url == "http://here:8000"
    assert resolve_credentials(environ=given, url="http://there").url == "http://there"
    with pytest.raises(ConfigurationError, match="no context 'x'; its contexts: maps, lab"):
        resolve_credentials(environ=stored, context="x")


def test_a_stored_token_is_never_sent_to_another_server(stored: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError, match="there is no token for http://there"):
        resolve_credentials(environ=stored, url="http://there")


@pytest.mark.parametrize("url", ["ninefold.example", "ftp://x", "http://", "http://[", "file:/x"])
def test_an_invalid_address_is_refused(url: str) -> None:
    with pytest.raises(ConfigurationError, match="must be an http or https URL"):
        resolve_credentials(environ={}, url=url, token="nfp-x")


def test_the_file_is_below_the_configuration_folder() -> None:
    assert configuration_path({"XDG_CONFIG_HOME": "/etc/x"}) == Path("/etc/x/ninefold/config.yaml")
    assert configuration_path({}) == Path.home() / ".config" / "ninefold" / "config.yaml"
