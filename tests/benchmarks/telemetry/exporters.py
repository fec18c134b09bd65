"""``python -m tests.benchmarks.telemetry.exporters CARDS TARGETS``: exporters of a fleet, on one port of loopback.

Each target is a path, ``/0/metrics``, ``/1/metrics`` …, with the cards of its share of the nodes, eight in each.
What they print changes from call to call, as it does on a machine that works. The port is printed first.
"""

from __future__ import annotations

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count

#: Ten figures of a card, as dcgm-exporter prints them.
SERIES = (
    "DCGM_FI_DEV_SM_CLOCK",
    "DCGM_FI_DEV_MEMORY_TEMP",
    "DCGM_FI_DEV_GPU_TEMP",
    "DCGM_FI_DEV_POWER_USAGE",
    "DCGM_FI_DEV_GPU_UTIL",
    "DCGM_FI_DEV_XID_ERRORS",
    "DCGM_FI_DEV_FB_FREE",
    "DCGM_FI_DEV_FB_USED",
    "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL",
    "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL",
)
CARDS_A_NODE = 8
_VARIANTS = 7


def exposition(cards: range, *, variant: int) -> bytes:
    """What an exporter of those cards prints."""
    lines = []
    for number, name in enumerate(SERIES):
        lines += [f"# HELP {name} As DCGM tells it.", f"# TYPE {name} gauge"]
        for card in cards:
            labels = (
                f'gpu="{card % CARDS_A_NODE}",UUID="GPU-{card:08x}-0000-4000-8000-{card:012x}",'
                f'pci_bus_id="00000000:1B:00.0",device="nvidia{card % CARDS_A_NODE}",'
                f'modelName="NVIDIA H200",Hostname="n{card // CARDS_A_NODE}",DCGM_FI_DRIVER_VERSION="570.86.15"'
            )
            value = (
                0 if "XID" in name else (card * 7 + number * 13 + variant * 29) % 89 + variant / 8
            )
            lines.append(f"{name}{{{labels}}} {value}")
    return ("\n".join(lines) + "\n").encode()


def shares(cards: int, targets: int) -> list[range]:
    """Which cards each target prints: whole nodes."""
    nodes = -(-cards // CARDS_A_NODE)
    each = -(-nodes // targets) * CARDS_A_NODE
    return [range(first, min(first + each, cards)) for first in range(0, cards, each)]


def main(cards: int, targets: int) -> None:
    bodies = [
        [exposition(share, variant=variant) for variant in range(_VARIANTS)]
        for share in shares(cards, targets)
    ]
    requests = count()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            target = int(self.path.split("/")[1])
            body = bodies[target][next(requests) // len(bodies) % _VARIANTS]
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Be quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
