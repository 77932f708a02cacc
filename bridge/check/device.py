"""The device that IRs are for: whether OpenVINO has it here, else what can be told without it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from bridge.check.engines.sessions import PLUGINS, has_device
from bridge.errors import Unsupported
from bridge.neutral.graph import Model
from bridge.options import require_options
from bridge.targets import device_of
from bridge.targets.limits import refusals

RAN_ON = "CPU"
"""The plugin of OpenVINO that a check runs IRs on where it has no other."""


def for_device(options: Mapping[str, Any]) -> dict[str, Any]:
    """The options that say whom an IR is for, of those that are given."""
    return {name: options[name] for name in ("device", "openvino") if options.get(name)}


def runs_on(options: Mapping[str, Any]) -> str:
    """The plugin of OpenVINO that a check runs IRs on: the device's own, where there is one."""
    name = device_of(options).name
    return name if name != RAN_ON and has_device(name) else RAN_ON


def is_elsewhere(options: Mapping[str, Any]) -> bool:
    """Whether IRs are for another plugin than the one that a check runs them on."""
    device = device_of(options)
    return device.shapes != "open" and device.name != runs_on(options)


@dataclass
class DeviceCheck:
    """The device and release that IRs are for. `asked` are the options that name them. `findings`
    are the parts of IRs that the device does not take, by the version of the model."""

    asked: Mapping[str, Any]
    findings: dict[str, list[Unsupported]] = field(default_factory=dict)
    ran_on: str = RAN_ON

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> DeviceCheck | None:
        """For the device and the release that the options name; None where they name none."""
        asked = for_device(options)
        require_options(asked, "ir")  # type: ignore[arg-type]
        if not asked:
            return None
        return cls(asked, ran_on=runs_on(asked))

    def look_at(self, version: str, model: Model) -> list[str]:
        """Looks over one version, an IR. Gives a line for each kind of thing that is not taken."""
        found = self.findings[version] = list(refusals(model, self.asked))
        kinds = defaultdict(list)
        for finding in found:
            kinds[finding.operator, finding.why].append(finding.where)
        return [
            f"{version}: {operator} (x{len(places)}): {why}; first at {places[0]}"
            for (operator, why), places in kinds.items()
        ]

    @property
    def name(self) -> str:
        """The device."""
        return device_of(self.asked).name

    @property
    def title(self) -> str:
        """The device and the release, and where the IRs ran instead."""
        release = self.asked.get("openvino")
        where = "" if self.name == self.ran_on else f", but run on the {self.ran_on} plugin"
        where = ", and run there" if self.name == self.ran_on != RAN_ON else where
        return f"for {self.name}{f' of OpenVINO {release}' if release else ''}{where}"

    def __str__(self) -> str:
        """What was shown of the device."""
        if not self.findings:
            return "there is no IR to hold to what it takes"
        takes = "does not take all of" if any(self.findings.values()) else "takes"
        takes = f"it {takes} the layers, element types, sizes and inputs of branches"
        return f"{takes}; by default it computes in f16" if self.name in PLUGINS else takes
