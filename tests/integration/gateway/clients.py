"""Requests of API clients."""

from __future__ import annotations

import json
from typing import Any

from openai.types.chat import ChatCompletionMessageParam

from tests.integration.gateway.conftest import SECRET
from tests.integration.gateway.processes import GatewayProcess


def user_message(text: str) -> list[ChatCompletionMessageParam]:
    return [{"role": "user", "content": text}]


def post(
    gateway: GatewayProcess,
    body: bytes | dict[str, Any],
    *,
    path: str = "/v1/chat/completions",
    **headers: str,
) -> tuple[int, dict[str, str], dict[str, Any]]:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    sent = {"Authorization": f"Bearer {SECRET}", "Content-Type": "application/json"}
    sent |= {name.replace("_", "-"): value for name, value in headers.items()}
    status, received, answer = gateway.request("POST", path, body=raw, headers=sent)
    return status, received, json.loads(answer)
