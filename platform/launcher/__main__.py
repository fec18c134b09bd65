"""``ninefold-server up|down|status|logs|engine|manage``, also ``python -m launcher``."""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from launcher import commands
from launcher.configuration import (
    CHECKOUT,
    InvalidLauncherSetting,
    LauncherConfiguration,
    default_home,
)
from launcher.home_folder import AlreadyRunning
from launcher.postgres import NoCompatiblePostgres, PostgresFailed
from launcher.product import PortInUse, ProductNotReady
from launcher.supervisor import SetupStepFailed

#: Expected errors, printed as one line without a traceback.
_EXPECTED = (
    AlreadyRunning,
    InvalidLauncherSetting,
    NoCompatiblePostgres,
    ProductNotReady,
    OSError,
    PortInUse,
    PostgresFailed,
    SetupStepFailed,
)


_PROGRAM = "ninefold-server"
_MANAGE = "manage"


def _parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog=_PROGRAM,
        description="Run Ninefold on this machine.",
        epilog="All files are in the folder NINEFOLD_HOME; without it in "
        f"{default_home()}. docs/settings.md lists all variables.",
    )
    parser.add_argument(
        "--version",
        action="version",
        version=f"{_PROGRAM} {importlib.metadata.version('ninefold')}",
    )
    parser.add_argument(
        "--project",
        type=lambda text: Path(text).resolve(),
        default=CHECKOUT,
        help="the checkout to run (default: that of this program; none if it is installed)",
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    up = verbs.add_parser("up", help="start the product and keep it running")
    up.add_argument(
        "--detach",
        action="store_true",
        default=os.environ.get("NINEFOLD_DETACH", "") not in ("", "0"),
        help="run in the background and return when ready (also NINEFOLD_DETACH=1)",
    )
    verbs.add_parser("serve", help="what a detached up runs")
    verbs.add_parser("down", help="stop the product and its local jobs")
    verbs.add_parser("engine", help="create the environment of the engine")
    verbs.add_parser("status", help="show what runs")
    logs = verbs.add_parser("logs", help="print the last lines of the logs")
    logs.add_argument("name", nargs="?", help="only this process")
    logs.add_argument("--lines", type=int, default=40)
    manage = verbs.add_parser(
        _MANAGE, help="run a management command, such as backup", add_help=False
    )
    manage.add_argument("arguments", nargs=argparse.REMAINDER)
    # Options of the management command are none of this parser's, even if they come first.
    own, passed_on = list(arguments), []
    if _MANAGE in own:
        index = own.index(_MANAGE) + 1
        own, passed_on = own[:index], own[index:]
    options = parser.parse_args(own)
    options.arguments = passed_on
    return options


def _run_command(options: argparse.Namespace) -> int:
    configuration = LauncherConfiguration.from_environment(project=options.project)
    if options.verb == _MANAGE:
        commands.run_management_command(options.arguments, configuration=configuration)
    match options.verb:
        case "engine":
            return commands.install_engine_environment(configuration)
        case "up":
            return commands.start_product(configuration, detached=options.detach)
        case "serve":
            return commands.run_detached_product(configuration)
        case "down":
            return commands.stop_product(configuration)
        case "status":
            return commands.print_product_status(configuration)
        case _:
            return commands.print_product_logs(
                configuration, name=options.name, lines=options.lines
            )


def main() -> int:
    options = _parse_arguments(sys.argv[1:])
    try:
        return _run_command(options)
    except _EXPECTED as error:
        print(f"ninefold: {error}", file=sys.stderr, flush=True)
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
