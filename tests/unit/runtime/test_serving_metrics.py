"""Counters in Prometheus' text form."""

from __future__ import annotations

from ninefold_runtime.serving.metrics import EngineMetrics


def test_requests_tokens_and_durations_are_counted() -> None:
    metrics = EngineMetrics()
    metrics.request(operation="completions", status=200)
    metrics.request(operation="completions", status=200)
    metrics.generated(prompt_tokens=5, completion_tokens=7, seconds=0.3)
    metrics.first_token(seconds=0.02)
    lines = metrics.text(running=1, waiting=2).splitlines()
    assert 'ninefold_engine_requests_total{operation="completions",status="200"} 2' in lines
    assert "ninefold_engine_prompt_tokens_total 5" in lines
    assert "ninefold_engine_completion_tokens_total 7" in lines
    assert "ninefold_engine_requests_waiting 2" in lines
    assert 'ninefold_engine_request_seconds_bucket{le="0.25"} 0' in lines
    assert 'ninefold_engine_request_seconds_bucket{le="0.5"} 1' in lines
    assert "ninefold_engine_time_to_first_token_seconds_count 1" in lines
