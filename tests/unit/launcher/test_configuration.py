from __future__ import annotations

import base64
from pathlib import Path

import pytest

from launcher import home_folder
from launcher.configuration import InvalidLauncherSetting, LauncherConfiguration
from launcher.home_folder import MODES, HomeLayout
from launcher.product import welcome_message


def _read(project: Path, **environment: str) -> LauncherConfiguration:
    return LauncherConfiguration.from_environment(environment, project=project)


def test_everything_has_a_default(tmp_path: Path) -> None:
    read = _read(tmp_path)
    assert read.layout.home == tmp_path / "var"
    assert (read.web_url, read.gateway_url) == ("http://127.0.0.1:8000", "http://127.0.0.1:8001")
    assert read.database_url is None


def test_a_relative_home_lies_below_the_project(tmp_path: Path) -> None:
    assert _read(tmp_path, NINEFOLD_HOME="data").layout.home == tmp_path / "data"


@pytest.mark.parametrize("text", ["http", "0", "65536", "-1", "80.5", "８000x"])
def test_a_port_that_is_none_is_named_with_its_variable(tmp_path: Path, text: str) -> None:
    with pytest.raises(InvalidLauncherSetting, match=f"NINEFOLD_WEB_PORT is '{text}'"):
        _read(tmp_path, NINEFOLD_WEB_PORT=text)


def test_a_server_bound_to_every_address_is_reached_at_this_machine(tmp_path: Path) -> None:
    read = _read(tmp_path, NINEFOLD_BIND="0.0.0.0", NINEFOLD_WEB_PORT="9000")
    assert read.web_url == "http://127.0.0.1:9000"


def test_people_are_sent_to_a_gateway_that_can_be_reached(tmp_path: Path) -> None:
    read = _read(tmp_path, NINEFOLD_BIND="0.0.0.0", NINEFOLD_GATEWAY_PORT="9001")
    given = read.child_environment(database_url="postgresql://x")
    assert given["NINEFOLD_GATEWAY_URL"] == "http://127.0.0.1:9001"
    named = _read(tmp_path, NINEFOLD_GATEWAY_URL="https://models.example")
    given = named.child_environment(database_url="postgresql://x")
    assert given["NINEFOLD_GATEWAY_URL"] == "https://models.example"


def test_an_ipv6_address_is_bracketed(tmp_path: Path) -> None:
    assert _read(tmp_path, NINEFOLD_BIND="::1").web_url == "http://[::1]:8000"


def test_processes_are_told_where_things_are_but_no_secret(tmp_path: Path) -> None:
    read = _read(tmp_path, HOME="/root", NINEFOLD_WEB_PORT="9000")
    read.layout.create()
    home_folder.generate_missing_secrets(read.layout.secrets)
    given = read.child_environment(database_url="postgresql://x")
    assert given["TMPDIR"] == str(tmp_path / "var" / "tmp")
    assert given["NINEFOLD_CONTROL_URL"] == "http://127.0.0.1:9000"
    assert given["HOME"] == "/root"
    secrets = {path.read_text().strip() for path in read.layout.secrets.iterdir()}
    assert not secrets & set(given.values())


def test_folders_have_their_modes_also_when_they_were_there_before(tmp_path: Path) -> None:
    layout = HomeLayout(home=tmp_path / "var")
    layout.create()
    (layout.home / "secrets").chmod(0o755)
    layout.create()
    assert {name: (layout.home / name).stat().st_mode & 0o777 for name in MODES} == dict(MODES)
    assert layout.home.stat().st_mode & 0o777 == 0o711


def test_a_home_that_a_person_made_keeps_its_mode(tmp_path: Path) -> None:
    home = tmp_path / "data"
    home.mkdir()
    home.chmod(0o750)
    HomeLayout(home=home).create()
    assert home.stat().st_mode & 0o777 == 0o750


def test_secrets_are_made_once_and_closed_to_others(tmp_path: Path) -> None:
    generated = home_folder.generate_missing_secrets(tmp_path)
    before = {path.name: path.read_text() for path in tmp_path.iterdir()}
    expected = {"secret_key", "encryption_key", "gateway_token", "metrics_token", "admin_password"}
    assert generated == expected == set(before)
    assert home_folder.generate_missing_secrets(tmp_path) == frozenset()
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == before
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}


def test_the_password_is_shown_once_and_on_a_terminal_only(tmp_path: Path) -> None:
    read = _read(tmp_path)
    read.layout.create()
    home_folder.generate_missing_secrets(read.layout.secrets)
    path = read.layout.secrets / "admin_password"
    password = path.read_text().strip()
    for interactive, shown in ((False, False), (True, True), (True, False)):
        text = welcome_message(read, interactive=interactive)
        assert (password in text) is shown
        assert (f"in {path}" in text) is not shown
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_encryption_key_is_one_that_fernet_takes(tmp_path: Path) -> None:
    home_folder.generate_missing_secrets(tmp_path)
    key = (tmp_path / "encryption_key").read_text().strip()
    assert len(base64.urlsafe_b64decode(key)) == 32
