"""Starts a vLLM command on one node of several: ``follow.py PORT COMMAND…``.

On the first node the command takes this process's place. On the others vLLM opens no port, so this program runs it
beside a small server that answers ``/health`` for as long as it lives, and ends with it.
"""

import os
import signal
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class HealthRequestHandler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/health" else 404)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_request(self, code: object = "-", size: object = "-") -> None:
        """Probes come every few seconds and carry no new information."""


def main() -> int:
    port, command = int(sys.argv[1]), sys.argv[2:]
    if os.environ["NODE_RANK"] == "0":
        os.execvp(command[0], command)
    running: list[subprocess.Popen[bytes]] = []
    stops: list[int] = []

    def stop(number: int, _frame: object) -> None:
        stops.append(number)
        for process in running:
            process.send_signal(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    process = subprocess.Popen([*command, "--headless"])
    running.append(process)
    # What came before there was a process to hand it on to.
    for early in stops:
        process.send_signal(early)
    server = ThreadingHTTPServer(("", port), HealthRequestHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return process.wait()


if __name__ == "__main__":
    sys.exit(main())
