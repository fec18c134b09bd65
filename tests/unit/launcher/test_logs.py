from __future__ import annotations

import io
import os
from pathlib import Path

from launcher.process_output import RotatingLog, TerminalOutput
from process_supervision.files import last_lines


class _Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_log_and_its_earlier_ones_stay_within_their_limit(tmp_path: Path) -> None:
    log = RotatingLog(tmp_path / "web.log", limit=100, backup_count=2)
    for number in range(100):
        log.write(f"line {number:03}")
    sizes = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    assert set(sizes) == {"web.log", "web.log.1", "web.log.2"}
    assert max(sizes.values()) <= 100
    assert last_lines(tmp_path / "web.log", lines=1) == ["line 099"]


def test_a_log_goes_on_where_an_earlier_run_left_it(tmp_path: Path) -> None:
    RotatingLog(tmp_path / "web.log", limit=30, backup_count=1).write("x" * 20)
    RotatingLog(tmp_path / "web.log", limit=30, backup_count=1).write("y" * 20)
    assert (tmp_path / "web.log.1").read_text() == "x" * 20 + "\n"
    assert (tmp_path / "web.log").read_text() == "y" * 20 + "\n"


def test_a_log_that_cannot_be_written_loses_lines_and_raises_nothing() -> None:
    RotatingLog(Path("/dev/full")).write("lost")


def test_lines_carry_the_name_of_their_process() -> None:
    stream = io.StringIO()
    terminal = TerminalOutput(stream, names=["web", "gateway"])
    terminal.line("web", "hello")
    assert stream.getvalue() == "web     | hello\n"


def test_colour_is_for_terminals_only() -> None:
    tty = _Tty()
    TerminalOutput(tty, names=["web"]).line("web", "hello")
    assert "\x1b[" in tty.getvalue()


def test_a_quiet_terminal_shows_only_the_launchers_own_messages() -> None:
    stream = io.StringIO()
    terminal = TerminalOutput(stream, names=["web"], echo=False)
    terminal.line("web", "hello")
    terminal.say("ready")
    assert stream.getvalue() == "ready\n"


def test_a_terminal_that_was_closed_is_no_error() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as stream:
        TerminalOutput(stream).say("nobody hears")
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def test_the_tail_of_a_missing_log_is_empty(tmp_path: Path) -> None:
    assert last_lines(tmp_path / "web.log", lines=3) == []


def test_the_tail_is_the_last_lines_in_order(tmp_path: Path) -> None:
    path = tmp_path / "web.log"
    path.write_text("".join(f"{number}\n" for number in range(5000)))
    assert last_lines(path, lines=3) == ["4997", "4998", "4999"]
