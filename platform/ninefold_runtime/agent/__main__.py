"""``python -m ninefold_runtime.agent --server URL --token-file FILE``: read the cards, send, again and again."""

from __future__ import annotations

import argparse
import os
import socket
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

from ninefold_runtime.agent.card_samples import CardSample, SampleBatch, format_exposition
from ninefold_runtime.agent.pci_topology import card_topology_samples
from ninefold_runtime.agent.push_client import MetricPushEndpoint
from ninefold_runtime.agent.readers import CHOICES, CardReader, choose_reader
from ninefold_runtime.agent.sender import BatchSender, BatchSequence
from ninefold_runtime.exit_codes import (
    ExitCode,
    InvalidTaskInput,
    StopSignalHandler,
    TaskError,
    TaskStopped,
)

_MOST_SECONDS = 3600.0


def main(arguments: list[str] | None = None) -> int:
    """0 after a stop request; else the exit code of the error, which is one line on standard error."""
    options = _argument_parser().parse_args(arguments)
    try:
        StopSignalHandler().listen()
        _run_agent(options)
    except TaskStopped as stopped:
        print(f"agent: {stopped}", flush=True)
    except TaskError as fault:
        print(f"agent: {fault}", file=sys.stderr, flush=True)
        return fault.code
    return ExitCode.FINISHED


def _run_agent(options: argparse.Namespace) -> None:
    server = MetricPushEndpoint.of(options.server, authorities=options.authorities)
    reader = choose_reader(options.reader, node=options.node, cards=options.cards)
    sender = BatchSender(
        server,
        vendor=reader.vendor,
        token=lambda: _read_token(options.token_file),
        sequence=BatchSequence(options.state, log=_log_line),
        keep=options.keep,
        log=_log_line,
    )
    _log_line(f"reads {reader.vendor} cards of {options.node} every {options.every:g} s")
    if server.is_plaintext:
        _log_line("the token crosses the network in the clear: use an https address")
    sender.start()
    send_periodically(reader, sender=sender, every_seconds=options.every)


def send_periodically(reader: CardReader, *, sender: BatchSender, every_seconds: float) -> None:
    """Read on the beat for ever; a beat that a slow reader missed is left out.

    :raises ReportNotDelivered: if the control plane refuses the token.
    """
    due, last_error = time.monotonic(), ""
    while True:
        began, at = time.monotonic(), datetime.now(UTC)
        reading = reader.read()
        if reading.error != last_error:
            _log_line(reading.error or "the cards can be read again")
            last_error = reading.error
        metrics = {
            # Where some cards answer, the missing ones show which cards failed.
            "reader_ok": bool(reading.samples),
            "reader_seconds": round(time.monotonic() - began, 6),
            "batches_waiting": sender.waiting,
            "batches_dropped_total": sender.dropped,
            "batches_refused_total": sender.refused,
            "batches_untaken_total": sender.untaken,
        }
        own = [CardSample(name=f"ninefold_agent_{name}", value=metrics[name]) for name in metrics]
        located = card_topology_samples(reading.addresses)
        sender.add(SampleBatch(at=at, text=format_exposition((*reading.samples, *located, *own))))
        due = max(due + every_seconds, time.monotonic())
        sender.pause(due - time.monotonic())


def _argument_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ninefold_runtime.agent", description="Send the figures of this node's cards."
    )
    parser.add_argument("--server", required=True, help="address of the control plane's pages")
    parser.add_argument("--token-file", type=Path, required=True, help="holds the node's token")
    parser.add_argument(
        "--node",
        default=os.environ.get("NINEFOLD_NODE") or socket.gethostname(),
        help="the node's name in its cluster; by default NINEFOLD_NODE, or the host's name",
    )
    parser.add_argument(
        "--every", type=_parse_seconds, default=5.0, help="seconds between two looks"
    )
    parser.add_argument("--reader", choices=CHOICES, default="auto")
    parser.add_argument(
        "--cards",
        type=_parse_count,
        default=0,
        help="cards the processor is shown as; 0: one a core",
    )
    parser.add_argument("--state", type=Path, help="where the number of the last batch is kept")
    parser.add_argument(
        "--keep",
        type=_parse_positive_count,
        default=720,
        help="batches kept while the control plane is away",
    )
    parser.add_argument("--authorities", type=Path, help="certificates (PEM) to trust for https")
    return parser


def _parse_seconds(text: str) -> float:
    value = float(text)
    if not 1.0 <= value <= _MOST_SECONDS:
        raise argparse.ArgumentTypeError(f"{text} is not between 1 and {_MOST_SECONDS:g} seconds")
    return value


def _parse_count(text: str) -> int:
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError(f"{text} is below 0")
    return value


def _parse_positive_count(text: str) -> int:
    value = _parse_count(text)
    if value == 0:
        raise argparse.ArgumentTypeError("at least 1 is needed")
    return value


def _read_token(path: Path) -> str:
    """:raises InvalidTaskInput: if the file cannot be read, or holds no token."""
    try:
        token = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidTaskInput(f"the token file {path} cannot be read: {error}") from error
    if not token or any(not character.isprintable() for character in token):
        raise InvalidTaskInput(f"the token file {path} holds no token")
    return token


def _log_line(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
