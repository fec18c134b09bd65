"""The spec of a script."""

from __future__ import annotations

from controlplane.domain.common.spec_fields import FieldKind, SpecField

SCRIPT = (
    SpecField(
        name="argv",
        label="Command",
        help='Program and arguments, such as ["python", "train.py"]; python is that of the engine.',
        kind=FieldKind.TEXTS,
    ),
    SpecField(
        name="environment",
        label="Environment",
        help="Environment variables of the program.",
        kind=FieldKind.VARIABLES,
        default={},
    ),
    SpecField(
        name="maximum_run_time_seconds",
        label="Maximum run time",
        help="Seconds after which the program is terminated.",
        kind=FieldKind.INTEGER,
        default=3600,
        least=1,
        most=30 * 24 * 3600,
    ),
)
