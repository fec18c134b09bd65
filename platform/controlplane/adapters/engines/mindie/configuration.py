"""``config.json`` of MindIE: its published default, with everything replaced that a replica needs otherwise.

The default has TLS with certificates that nobody made, listens on 127.0.0.1, and ends answers after 512 tokens
in a window of 2,560 (``default_config.json``, from MindIE-LLM at 8b4871a).
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

from controlplane.adapters.engines.servers import MODEL, Order

#: The port of health and administration, and that of metrics, beside the HTTP port.
MANAGEMENT, METRICS = "management", "metrics"
_EVERY_ADDRESS = "0.0.0.0"  # noqa: S104 - inside of its container
#: Tokens that its prefill takes at once, at least.
_PREFILL_TOKENS = 8192
#: Where neither spec nor model says how long a conversation may be.
_USUAL_LENGTH = 32_768
_USUAL_BATCH = 200
_USUAL_PREFILL_BATCH = 50


def configuration(order: Order) -> str:
    """The file; its placeholders are filled by the cluster."""
    whole = json.loads(_default())
    whole["ServerConfig"] |= _server()
    backend = whole["BackendConfig"]
    cards = order.plan.cards
    backend |= {
        "npuDeviceIds": [list(range(cards))],
        "tokenizerProcessNumber": 8,
        "multiNodesInferEnabled": False,
        "interNodeTLSEnabled": False,
    }
    length = _length(order)
    deploy = backend["ModelDeployConfig"]
    # The prompt leaves room for one token at least; how long the answer is the caller says.
    deploy |= {"maxSeqLen": length, "maxInputTokenLen": length - 1, "truncation": 0}
    deploy["ModelConfig"][0] |= {
        "modelName": order.spec["model_name"],
        "modelWeightPath": MODEL,
        "worldSize": cards,
        "cpuMemSize": 0,
        "npuMemSize": -1,
        "backendType": "atb",
        "trustRemoteCode": False,
    }
    batch = order.spec["concurrency"] or _USUAL_BATCH
    backend["ScheduleConfig"] |= {
        "maxBatchSize": batch,
        "maxPrefillBatchSize": min(_USUAL_PREFILL_BATCH, batch),
        "maxPrefillTokens": max(_PREFILL_TOKENS, length - 1),
        # No answer is cut off before the window is full.
        "maxIterTimes": length,
    }
    text = json.dumps(whole, indent=2, ensure_ascii=False) + "\n"
    # A port is a number in this file, and a placeholder is a text.
    for name in ("http", MANAGEMENT, METRICS):
        text = text.replace(f'"{{port:{name}}}"', f"{{port:{name}}}")
    return text


def _server() -> dict[str, Any]:
    return {
        # Of its own container: probes and the gateway come from outside of it.
        "ipAddress": _EVERY_ADDRESS,
        "managementIpAddress": _EVERY_ADDRESS,
        "port": "{port:http}",
        "managementPort": "{port:management}",
        "metricsPort": "{port:metrics}",
        "allowAllZeroIpListening": True,
        "httpsEnabled": False,
        "interCommTLSEnabled": False,
        "openAiSupport": "vllm",
        "inferMode": "standard",
        "fullTextEnabled": False,
        "tokenTimeout": 600,
        "e2eTimeout": 600,
    }


def _length(order: Order) -> int:
    context = order.model.context_length if order.model else 0
    return int(order.spec["context_length"] or context or _USUAL_LENGTH)


@cache
def _default() -> str:
    folder = files("controlplane.adapters.engines.mindie")
    return folder.joinpath("default_config.json").read_text(encoding="utf-8")


@cache
def start_program() -> str:
    """The shell script that sets up the image's libraries and starts the daemon."""
    folder = files("controlplane.adapters.engines.mindie")
    return folder.joinpath("start.sh").read_text(encoding="utf-8")
