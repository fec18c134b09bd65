"""What every engine has in common that comes as an image of its own: the image, its version, where it runs.

``trainers.py`` and ``servers.py`` add what engines that train, and those that serve, have in common beside that.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from controlplane.adapters.engines import images, sequence
from controlplane.domain.common.accelerators import Chip, ChipKind
from controlplane.domain.common.spec_fields import FieldFinding, FieldLimit
from controlplane.ports.engines import ROLES, EngineProfile, ModelFacts, RenderRequest, Task
from controlplane.ports.launches import EngineEnvironment, Launch, Role

#: Libraries of every such image: they find nothing outside, tell nobody, and write into their own folder.
ENVIRONMENT: Mapping[str, str] = {
    "HF_HOME": "{work}/tmp/huggingface",
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "PYTHONUNBUFFERED": "1",
    "TOKENIZERS_PARALLELISM": "false",
}


class ContainerEngine(ABC):
    """Implements the part of ``controlplane.ports.engines.Engine`` that follows from the image."""

    name: str

    @abstractmethod
    def profile(self) -> EngineProfile: ...

    @abstractmethod
    def limits(
        self, task: Task, *, chip: Chip | None, model: ModelFacts | None
    ) -> tuple[FieldLimit, ...]: ...

    def environment(self) -> EngineEnvironment | None:
        """None: it comes as an image only."""
        return None

    def runs_on(self, task: Task, chip: Chip) -> str:
        if chip.kind is ChipKind.CPU:
            return f"{self.profile().title} needs an accelerator"
        return images.no_image(self.profile(), engine=self.name, chip=chip)

    def image(self, chip: Chip, spec: Mapping[str, Any]) -> str:
        """The image that runs the spec on the chip; empty if nobody knows one."""
        return images.image(self.profile(), engine=self.name, chip=chip, spec=spec)

    def check_version(
        self, spec: Mapping[str, Any], *, chip: Chip | None
    ) -> tuple[FieldFinding, ...]:
        """What is wrong with the version that the spec asks for."""
        return images.check_version(self.profile(), spec, engine=self.name, chip=chip)

    def launch_of_steps(
        self,
        request: RenderRequest,
        *,
        spec: Mapping[str, Any],
        files: Mapping[str, str],
        environment: Mapping[str, str],
        grace: timedelta,
        shares_checkpoints: bool = False,
    ) -> Launch:
        """The Launch of a gang of equal replicas that run the steps among the files and report."""
        variables = dict(environment)
        if request.report_url:
            variables["NINEFOLD_REPORT_URL"] = request.report_url
        role = Role(
            name=ROLES[request.task],
            argv=sequence.ARGV,
            placements=request.placements,
            environment=variables,
        )
        return Launch(
            name=request.name,
            roles=(role,),
            files=files,
            inputs=request.inputs,
            image=self.image(request.chip, spec),
            secrets={"NINEFOLD_ATTEMPT_TOKEN": request.token} if request.token else {},
            grace=grace,
            continues=request.continues,
            shares_checkpoints=shares_checkpoints,
            labels=request.labels,
        )
