from __future__ import annotations

from pathlib import Path

import pytest

from gateway.settings import GatewaySettings
from http_server.connection_limits import InvalidSetting

TOKEN = "sixteen-letters-or-more"


def settings_of(home: Path, **variables: str) -> GatewaySettings:
    return GatewaySettings.from_environment(
        {"NINEFOLD_HOME": str(home), "NINEFOLD_GATEWAY_TOKEN": TOKEN, **variables}
    )


def test_only_the_token_is_required(tmp_path: Path) -> None:
    settings = settings_of(tmp_path)
    assert (settings.host, settings.port) == ("127.0.0.1", 8001)
    assert settings.control_url == "http://127.0.0.1:8000"
    assert settings.folder.stat().st_mode & 0o777 == 0o700


def test_gateway_id_is_persistent(tmp_path: Path) -> None:
    assert settings_of(tmp_path).gateway_id == settings_of(tmp_path).gateway_id
    assert settings_of(tmp_path, NINEFOLD_GATEWAY_ID="east-1").gateway_id == "east-1"


def test_the_token_is_read_from_its_file(tmp_path: Path) -> None:
    with pytest.raises(InvalidSetting, match="gateway_token"):
        GatewaySettings.from_environment({"NINEFOLD_HOME": str(tmp_path)})
    file = tmp_path / "secrets" / "gateway_token"
    file.parent.mkdir()
    file.write_text(f"{TOKEN}\n")
    assert GatewaySettings.from_environment({"NINEFOLD_HOME": str(tmp_path)}).token == TOKEN


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("NINEFOLD_CONTROL_URL", "localhost:8000"),
        ("NINEFOLD_GATEWAY_TOKEN", "short"),
        ("NINEFOLD_GATEWAY_ID", "../elsewhere"),
        ("NINEFOLD_GATEWAY_ORIGINS", "*"),
        ("NINEFOLD_GATEWAY_PORT", "http"),
        ("NINEFOLD_GATEWAY_TOTAL_SECONDS", "0"),
        ("NINEFOLD_GATEWAY_CONNECT_SECONDS", "nan"),
    ],
)
def test_invalid_value_is_refused_with_variable_name(tmp_path: Path, name: str, value: str) -> None:
    with pytest.raises(InvalidSetting, match=name):
        settings_of(tmp_path, **{name: value})
