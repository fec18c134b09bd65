"""What a crashed job left behind: whose doing it looks like, by the end of its log.

A log is its owner's word: whoever can print can print an error of a card. So it is evidence, which is weighed
together with that of other jobs and other nodes (``suspicions``), and by itself no reason to take a card away.

The lines are searched for the signatures below. A program that is to blame goes before everything else, since
what follows from its mistake (a collective that times out on the other ranks) looks like trouble of the hardware;
of the rest the strongest counts, and of equals the last.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from controlplane.domain.health.situations import Blame

#: Signatures are looked for in so much of the end, in characters.
_LONGEST_TAIL: Final = 64_000
_LONGEST_LINE: Final = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """Words that a kind of crash leaves in a log."""

    #: A stable word; followed by what the pattern captures, if it captures anything.
    code: str
    blame: Blame
    pattern: re.Pattern[str]
    #: Whose fault map knows what is captured; empty where none does.
    vendor: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Crash:
    """The signature that was found."""

    code: str
    blame: Blame
    #: The line in which it stands.
    line: str
    vendor: str = ""
    #: The vendor's own code, where the signature holds one.
    fault: str = ""


def _signature(code: str, blame: Blame, pattern: str, *, vendor: str = "") -> Signature:
    compiled = re.compile(pattern, re.IGNORECASE)
    return Signature(code=code, blame=blame, pattern=compiled, vendor=vendor)


#: ``NVRM: Xid (PCI:0000:3b:00): 79, …``, as the driver writes it, or just ``Xid 79``.
_XID: Final = r"\bxid\b[^\d\n]{0,40}?(?:\([^)\n]*\):?\s*)?"
#: In the order of their weight among those of the same blame, the weakest first.
SIGNATURES: Final = (
    # Of the program. A device-side assertion is an index out of range or a label that there is none of.
    _signature("out-of-memory", Blame.PROGRAM, r"outofmemoryerror|out of memory\b"),
    _signature("device-assert", Blame.PROGRAM, r"device-side assert triggered"),
    _signature("no-space", Blame.PROGRAM, r"no space left on device"),
    # A collective gives up when one member is late: for a broken link, a slow card, or because its program died.
    _signature("nccl-timeout", Blame.UNCLEAR, r"watchdog caught collective operation timeout"),
    _signature(
        "nccl-error", Blame.UNCLEAR, r"\bnccl (?:error|warn).*|ncclSystemError|ncclRemoteError"
    ),
    _signature("hccl-timeout", Blame.UNCLEAR, r"\bhccl.*(?:time ?out|notify wait)"),
    # Codes of CANN: a letter for the kind of error, another for the module (I: collectives, J: their transport).
    _signature("cann", Blame.UNCLEAR, r"\b(E[IJ]\d{4})\b"),
    _signature("cuda-illegal-access", Blame.UNCLEAR, r"an illegal memory access was encountered"),
    _signature("xid", Blame.UNCLEAR, rf"{_XID}(\d{{1,4}})\b", vendor="nvidia"),
    _signature(
        "nan",
        Blame.UNCLEAR,
        r"\bloss(?:'|\")?\s*[:=]\s*nan\b|nan (?:or inf )?(?:found|detected) in",
    ),
    # Of the card, its links or its node.
    _signature("nvlink", Blame.HARDWARE, r"nvlink (?:error|failure)|uncorrectable nvlink error"),
    _signature(
        "launch-failure", Blame.HARDWARE, r"unspecified launch failure|hardware stack error"
    ),
    _signature(
        "npu-error",
        Blame.HARDWARE,
        r"\b(?:hbm|aicore|ai core).*(?:ecc|multi.?bit|hardware).*(?:error|fault)",
    ),
    _signature("bus-error", Blame.HARDWARE, r"\bbus error\b|\bSIGBUS\b"),
    _signature("ecc", Blame.HARDWARE, r"uncorrectable ecc error|ecc error encountered"),
    _signature(
        "device-lost",
        Blame.HARDWARE,
        r"device (?:is )?lost|no longer (?:connected|available) on the bus",
    ),
    _signature("off-the-bus", Blame.HARDWARE, r"fallen off the bus"),
    # Those after which the driver wants a reset or a person; the others end a program, often by its own fault.
    _signature(
        "xid",
        Blame.HARDWARE,
        rf"{_XID}(46|48|54|62|64|74|79|95|1(?:09|10|19|20|36|4[03-9]|5[0568]|6[02]))\b",
        vendor="nvidia",
    ),
)
_STRENGTH: Final = {Blame.UNCLEAR: 0, Blame.HARDWARE: 1, Blame.PROGRAM: 2}


def signature(tail: str) -> Crash | None:
    """What the end of a log tells; None if it tells nothing that is known."""
    found: tuple[tuple[int, int], Crash] | None = None
    for line in tail[-_LONGEST_TAIL:].splitlines():
        for place, known in enumerate(SIGNATURES):
            match = known.pattern.search(line[:_LONGEST_LINE])
            if match is None:
                continue
            rank = (_STRENGTH[known.blame], place)
            if found is None or rank >= found[0]:
                found = rank, _crash(known, match, line)
    return None if found is None else found[1]


def _crash(known: Signature, match: re.Match[str], line: str) -> Crash:
    own = (match[1] or "") if known.pattern.groups else ""
    return Crash(
        code=f"{known.code}-{own}".rstrip("-"),
        blame=known.blame,
        line=line.strip()[:_LONGEST_LINE],
        vendor=known.vendor if own else "",
        fault=own if known.vendor else "",
    )
