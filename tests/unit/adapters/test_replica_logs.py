from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from controlplane.adapters.clusters.local.replica_logs import BoundedLog, SecretRedactor, read_chunk

SECRET = "abababac-secret"


@given(some.lists(some.integers(min_value=1, max_value=9), max_size=60))
def test_a_secret_is_replaced_wherever_the_stream_is_cut(cuts: list[int]) -> None:
    text = f"one {SECRET} two ab{SECRET}{SECRET} abababa end abab".encode()
    redaction, out, start = SecretRedactor([SECRET]), b"", 0
    for cut in cuts:
        out += redaction.feed(text[start : start + cut])
        start += cut
    out += redaction.feed(text[start:]) + redaction.flush()
    assert out == text.replace(SECRET.encode(), b"[secret]")


def test_a_short_secret_is_ordinary_text() -> None:
    redaction = SecretRedactor(["a", ""])
    assert redaction.feed(b"banana") + redaction.flush() == b"banana"


def test_a_secret_within_a_secret_leaves_nothing_of_the_longer() -> None:
    redaction = SecretRedactor(["password", "password-of-admin"])
    assert redaction.feed(b"is password-of-admin.") + redaction.flush() == b"is [secret]."


def test_no_byte_is_held_back_that_cannot_begin_a_secret() -> None:
    assert SecretRedactor([SECRET]).feed(b"loss 0.5\n") == b"loss 0.5\n"


@pytest.mark.parametrize("size", [0, 1, 99, 100, 101, 50_000])
def test_up_to_the_limit_everything_is_kept_and_beyond_it_the_end(
    tmp_path: Path, size: int
) -> None:
    content = bytes(ord("a") + number % 26 for number in range(size))
    log = BoundedLog(tmp_path / "log", limit=100)
    for start in range(0, size, 7):
        log.write(content[start : start + 7])
    log.close()
    written = (tmp_path / "log").read_bytes()
    if size < 100:
        assert written == content
    else:
        assert written.startswith(content[:100] + b"\n[ninefold] log truncated")
        retained = content[100:][-16 * 1024 :]
        assert written.endswith(retained)


def test_the_last_line_is_the_jobs_own() -> None:
    log = BoundedLog(Path("/dev/null"), limit=1000)
    log.write(b"step 1\n\xff boom \n\n")
    log.write_message("stopped on request")
    assert log.last_line() == "\ufffd boom"
    log.close()


def test_a_log_that_was_never_written_is_empty_and_complete_only_after_the_end(
    tmp_path: Path,
) -> None:
    for ended in (True, False):
        chunk = read_chunk(tmp_path / "none", offset=-5, limit=10, ended=ended)
        assert (chunk.content, chunk.next_offset, chunk.complete) == (b"", 0, ended)
