"""The settings reference finds what the code reads, and refuses what disagrees with it."""

from __future__ import annotations

from tests.settings_reference import (
    SettingRead,
    page,
    problems,
    reads_of_compose,
    reads_of_module,
    settings_file,
)

MODULE = """
LEAST = 1024
PORT = "NINEFOLD_PORT"
limit = env.int("NINEFOLD_LIMIT", default=256 * 1024)
days = read_bounded_integer("NINEFOLD_DAYS", default=7, least=1)
body = int(_read_number(environ, "NINEFOLD_BODY", 16 * LEAST, least=LEAST))
bind = environ.get("NINEFOLD_BIND") or "127.0.0.1"
format = require_one_of("NINEFOLD_FORMAT", ("text", "json"))
key = read_secret("key")
work = os.environ["NINEFOLD_WORK"]
port = _read_port(environment, PORT, 8000)
label = f"set NINEFOLD_HOME or NINEFOLD_BIND"
"""
SETTINGS = """
internal = ["NINEFOLD_WORK"]
[[group]]
title = "Files"
[[group.setting]]
name = "NINEFOLD_DAYS"
unit = "days"
meaning = "Retention of samples."
"""


def read(name: str, **values: object) -> SettingRead:
    return SettingRead(name=name, path="platform/config/x.py", **values)  # type: ignore[arg-type]


def test_it_reads_names_defaults_and_limits_from_the_code() -> None:
    assert reads_of_module("platform/config/x.py", MODULE) == [
        read("NINEFOLD_LIMIT", default=262144),
        read("NINEFOLD_DAYS", default=7, least=1),
        read("NINEFOLD_BODY", default=16384, least=1024),
        read("NINEFOLD_BIND", default="127.0.0.1"),
        read("NINEFOLD_FORMAT", default="text", choices=("text", "json")),
        read("NINEFOLD_KEY"),
        read("NINEFOLD_WORK"),
        read("NINEFOLD_PORT", default=8000),
    ]


def test_it_reads_the_defaults_of_compose() -> None:
    (found,) = reads_of_compose('ports: ["${NINEFOLD_LISTEN:-127.0.0.1}:8000"]')
    assert (found.name, found.default) == ("NINEFOLD_LISTEN", "127.0.0.1")


def test_the_page_has_default_limit_reader_and_meaning() -> None:
    reads = {"NINEFOLD_DAYS": [read("NINEFOLD_DAYS", default=7, least=1)]}
    line = "| `NINEFOLD_DAYS` | 7 | days, at least 1 | product | Retention of samples. |"
    assert line in page(settings_file(SETTINGS), reads).splitlines()


def test_it_refuses_a_missing_an_unread_and_a_repeated_default() -> None:
    days = read("NINEFOLD_DAYS", default=7, least=1)
    good = {"NINEFOLD_DAYS": [days], "NINEFOLD_WORK": [read("NINEFOLD_WORK")]}
    assert problems(settings_file(SETTINGS), good) == []
    (missing,) = problems(settings_file(SETTINGS), good | {"NINEFOLD_X": [read("NINEFOLD_X")]})
    assert missing.startswith("NINEFOLD_X is read by platform/config/x.py")
    (unread,) = problems(settings_file(SETTINGS), {"NINEFOLD_DAYS": [days]})
    assert unread.startswith("NINEFOLD_WORK is in docs/settings.toml")
    (stated,) = problems(settings_file(SETTINGS + 'default = "7"\n'), good)
    assert stated == "NINEFOLD_DAYS: remove its default, the code has 7"
    differing = {**good, "NINEFOLD_DAYS": [days, read("NINEFOLD_DAYS", default=8)]}
    (several,) = problems(settings_file(SETTINGS), differing)
    assert several.startswith("NINEFOLD_DAYS has the defaults 7, 8 in the code")
