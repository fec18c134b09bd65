"""Says by its exit status whether a process of the product does its work; for containers, which have no curl.

``python -m launcher.healthcheck answers PORT PATH``     the server of this container answers 200 there
``python -m launcher.healthcheck fresh PREFIX SECONDS``  a file whose path begins so was written within that time
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from process_supervision.processes import http_check_error

_WITHIN = 4.0


def stale_file_check_error(prefix: Path, seconds: float) -> str:
    """Why there is no such file; empty if there is."""
    ages = [time.time() - path.stat().st_mtime for path in prefix.parent.glob(f"{prefix.name}*")]
    if not ages:
        return f"there is no file {prefix}*"
    return "" if min(ages) <= seconds else f"{prefix}* was written {min(ages):.0f} s ago"


def main(arguments: list[str]) -> int:
    """0 if all is well, 1 if not, 2 if it was asked wrongly."""
    match arguments:
        case ["answers", port, path] if port.isdecimal():
            problem = http_check_error(path, port=int(port), within=_WITHIN)
        case ["fresh", prefix, seconds] if seconds.isdecimal():
            problem = stale_file_check_error(Path(prefix), float(seconds))
        case _:
            sys.stderr.write(__doc__ or "")
            return 2
    if problem:
        sys.stderr.write(f"{problem}\n")
    return 1 if problem else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
