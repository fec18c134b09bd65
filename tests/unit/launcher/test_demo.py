"""``make demo``: the same product with another first step and a voice for simulated processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from launcher.configuration import LauncherConfiguration
from launcher.services import product_services, setup_steps


def configured(tmp_path: Path, **variables: str) -> LauncherConfiguration:
    return LauncherConfiguration.from_environment(
        {"NINEFOLD_HOME": str(tmp_path), **variables}, project=tmp_path
    )


def test_the_demonstration_makes_a_company_instead_of_this_machine(tmp_path: Path) -> None:
    demo = configured(tmp_path, NINEFOLD_DEMO="1")
    commands = [step.command[1:] for step in setup_steps(demo, collect_static=False)]
    assert commands[-1] == ("manage.py", "demo", "make")
    assert product_services(demo)[-1].command[1:] == ("manage.py", "demo", "run")


@pytest.mark.parametrize("said", [{}, {"NINEFOLD_DEMO": ""}, {"NINEFOLD_DEMO": "0"}])
def test_the_product_itself_has_nothing_of_it(tmp_path: Path, said: dict[str, str]) -> None:
    product = configured(tmp_path, **said)
    assert all("demo" not in step.command for step in setup_steps(product, collect_static=True))
    assert "demo" not in {service.name for service in product_services(product)}
