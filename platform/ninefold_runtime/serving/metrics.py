"""Counters and durations of the engine in Prometheus' text form."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter

_SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class RequestDurationHistogram:
    """Counts of durations by upper bound, in seconds."""

    def __init__(self) -> None:
        self._counts = [0] * (len(_SECONDS) + 1)
        self._sum = 0.0

    def observe(self, seconds: float) -> None:
        self._counts[bisect_left(_SECONDS, seconds)] += 1
        self._sum += seconds

    def lines(self, name: str) -> list[str]:
        lines, total = [f"# TYPE {name} histogram"], 0
        for bound, count in zip((*map(str, _SECONDS), "+Inf"), self._counts, strict=True):
            total += count
            lines.append(f'{name}_bucket{{le="{bound}"}} {total}')
        return [*lines, f"{name}_sum {self._sum:.6f}", f"{name}_count {total}"]


class EngineMetrics:
    """What has happened since the process began. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: Counter[tuple[str, int]] = Counter()
        self._tokens: Counter[str] = Counter()
        self._first_token = RequestDurationHistogram()
        self._duration = RequestDurationHistogram()

    def request(self, *, operation: str, status: int) -> None:
        with self._lock:
            self._requests[operation, status] += 1

    def first_token(self, *, seconds: float) -> None:
        with self._lock:
            self._first_token.observe(seconds)

    def generated(self, *, prompt_tokens: int, completion_tokens: int, seconds: float) -> None:
        with self._lock:
            self._tokens["prompt"] += prompt_tokens
            self._tokens["completion"] += completion_tokens
            self._duration.observe(seconds)

    def text(self, *, running: int, waiting: int) -> str:
        """The exposition format, version 0.0.4."""
        with self._lock:
            lines = ["# TYPE ninefold_engine_requests_total counter"]
            for (operation, status), count in sorted(self._requests.items()):
                labels = f'operation="{operation}",status="{status}"'
                lines.append(f"ninefold_engine_requests_total{{{labels}}} {count}")
            for kind in ("prompt", "completion"):
                name = f"ninefold_engine_{kind}_tokens_total"
                lines += [f"# TYPE {name} counter", f"{name} {self._tokens[kind]}"]
            for name, value in (("running", running), ("waiting", waiting)):
                gauge = f"ninefold_engine_requests_{name}"
                lines += [f"# TYPE {gauge} gauge", f"{gauge} {value}"]
            lines += self._first_token.lines("ninefold_engine_time_to_first_token_seconds")
            lines += self._duration.lines("ninefold_engine_request_seconds")
        return "\n".join(lines) + "\n"
