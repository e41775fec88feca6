"""Finds a node's power: from its administrator's annotation, else from its hardware."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from greensched_core import labels as names
from greensched_core.errors import BadInput
from greensched_core.power.curves import PowerCurve
from greensched_core.power.hardware import (
    Architecture,
    Catalogue,
    Gpu,
    KnownGpu,
    Machine,
    cpu_words,
    shipped_catalogue,
)
from greensched_core.quoting import near

GPU_COUNT = "nvidia.com/gpu.count"  # physical GPUs, by NVIDIA's feature discovery
# Series, vCPUs, features, accelerator, version: Standard_NC24ads_A100_v4.
_AZURE = re.compile(
    r"(?:Standard|Basic)_([A-Z]+)\d+(?:-\d+)?([a-z]*)(?:_[A-Z0-9]+)*?(?:_(v\d+))?", re.ASCII
)
_AZURE_HARDWARE = "apl"  # AMD, ARM, little memory: other hardware; d, s, i, r, m are not
_WHOLE_FROM, _WHOLE_TO = 0.9, 1.1  # allocatable CPUs by CPUs of a whole machine
_MOST_CACHED = 16_384
_MOST_CPUS = 1e5  # of one node; above any machine
_Key = tuple[str | None, str | None, str | None, str | None, str | None, str | None, float, int]


@dataclass(frozen=True, slots=True)
class NodePower:
    """The power of one node, and its source."""

    curve: PowerCurve  # without GPUs
    source: str  # annotation, label, instance-type, cpu-model or default
    hardware: str  # name in the catalogue
    speed: float  # throughput per CPU, relative to the reference machine's
    gpu: Gpu | None
    faults: tuple[str, ...] = ()  # labels that were not understood, and what to do


@dataclass(frozen=True, slots=True)
class _Found:
    curve: PowerCurve
    source: str
    hardware: str
    speed: float


class PowerCatalogue:
    """Finds the power of nodes; results are cached for equal nodes."""

    def __init__(self, catalogue: Catalogue | None = None) -> None:
        self._known = catalogue or shipped_catalogue()
        self._resolved: dict[_Key, NodePower] = {}

    def resolve(
        self,
        labels: Mapping[str, str],
        annotations: Mapping[str, str],
        cpu_cores: float,
        gpu_count: int,
    ) -> NodePower:
        """Return the power of a node with these labels, `cpu_cores` CPUs and `gpu_count` GPUs.

        The curve comes from the annotation power-curve-watts, else the label power-model, the
        instance type, the label cpu-model, else the default per CPU. Speed and GPU come from the
        best of these that has them. Never raises: `faults` lists what is not understood.
        """
        key = (
            annotations.get(names.POWER_CURVE_WATTS),
            labels.get(names.POWER_MODEL),
            labels.get(names.INSTANCE_TYPE),
            labels.get(names.CPU_MODEL),
            labels.get(names.GPU_PRODUCT),
            labels.get(GPU_COUNT),
            cpu_cores,
            gpu_count,
        )
        power = self._resolved.get(key)
        if power is None:
            if len(self._resolved) >= _MOST_CACHED:
                self._resolved.clear()
            power = self._resolved[key] = self._resolve(key)
        return power

    def _resolve(self, key: _Key) -> NodePower:
        curve_text, model, instance, cpu, product, gpus, cpu_cores, gpu_count = key
        faults: list[str] = []
        if not 0 <= cpu_cores <= _MOST_CPUS:
            faults.append(f"{cpu_cores:g} CPUs are implausible: counted within 0 to {_MOST_CPUS:g}")
            cpu_cores = min(max(cpu_cores, 0.0), _MOST_CPUS)
        found = self._hardware(model, instance, cpu, cpu_cores, faults)
        if curve_text is not None:
            try:
                curve = PowerCurve.parse(curve_text)
                found = _Found(curve, "annotation", found.hardware, found.speed)
            except BadInput as fault:
                faults.append(f"annotation {names.POWER_CURVE_WATTS}: {fault}")
        gpu = self._gpu(product, gpus, instance, gpu_count, faults)
        return NodePower(found.curve, found.source, found.hardware, found.speed, gpu, tuple(faults))

    def _hardware(
        self,
        model: str | None,
        instance: str | None,
        cpu: str | None,
        cpu_cores: float,
        faults: list[str],
    ) -> _Found:
        if model:
            machine = self._known.machines.get(model.lower())
            if machine is not None:
                return _of_machine(machine, "label", cpu_cores)
            close = near(model, self._known.machines)
            faults.append(f"label {names.POWER_MODEL}: {model!r} is not in the power catalogue"
                          f"{close}; see docs/power.md for its names")  # fmt: skip
        family = _family(instance or "")
        architecture = self._known.families.get(family)
        if architecture is not None:
            return _of_architecture(architecture, "instance-type", cpu_cores)
        if cpu:
            machine = self._by_cpu(cpu, cpu_cores)
            if machine is not None:
                return _of_machine(machine, "cpu-model", cpu_cores)
            faults.append(f"label {names.CPU_MODEL}: {cpu!r} is not in the power catalogue: the "
                          f"default per CPU is assumed; {_REMEDY}")  # fmt: skip
        elif instance and not model:
            faults.append(f"instance type {instance!r} is not in the power catalogue: the default "
                          f"per CPU is assumed; {_REMEDY}")  # fmt: skip
        return _of_architecture(self._known.default_cpu, "default", cpu_cores)

    def _by_cpu(self, text: str, cpu_cores: float) -> Machine | None:
        """Return the machine with that CPU model whose number of CPUs is closest."""
        words = cpu_words(text)
        fitting = [
            machine
            for machine in self._known.machines.values()
            if any(_holds(words, cpu) for cpu in machine.cpus)
        ]
        return min(fitting, key=lambda it: abs(it.threads - cpu_cores), default=None)

    def _gpu(
        self,
        product: str | None,
        gpus: str | None,
        instance: str | None,
        count: int,
        faults: list[str],
    ) -> Gpu | None:
        if count <= 0:
            return None
        gpu = self._named_gpu(product) if product else None
        if gpu is None:
            family = _family(instance or "")
            gpu = self._known.family_gpus.get(family)
        if gpu is None:
            gpu = self._known.default_gpu
            unknown = f"label {names.GPU_PRODUCT}: {product!r} is not in the power catalogue"
            faults.append(
                f"{unknown if product else f'no label {names.GPU_PRODUCT}'}: a GPU of "
                f"{gpu.idle_w:g} to {gpu.peak_w:g} W is assumed"
            )
        share = _gpu_share(product, gpus, count)
        return Gpu(product or gpu.name, count, gpu.idle_w * share, gpu.peak_w * share)

    def _named_gpu(self, product: str) -> KnownGpu | None:
        words = set(re.findall(r"[a-z0-9]+", product.lower()))
        words |= {word.rstrip("0123456789") for word in words if word.startswith(("sxm", "pcie"))}
        fitting = [it for it in self._known.gpus.values() if it.product <= words]
        return max(fitting, key=lambda it: len(it.product), default=None)


_REMEDY = f"set the label {names.POWER_MODEL} or the annotation {names.POWER_CURVE_WATTS}"


def _of_machine(machine: Machine, source: str, cpu_cores: float) -> _Found:
    """Return the machine's curve, scaled to the node's share of CPUs if it is a part of it.

    A node with as many CPUs as the machine has cores is a whole machine without multithreading.
    """
    whole = machine.threads
    if _is_whole(cpu_cores / machine.cores):
        whole = machine.cores
    share = cpu_cores / whole
    curve = machine.curve if _is_whole(share) or share <= 0 else machine.curve.scaled(share)
    return _Found(curve, source, machine.name, machine.speed * machine.threads / whole)


def _is_whole(share: float) -> bool:
    return _WHOLE_FROM <= share <= _WHOLE_TO


def _of_architecture(architecture: Architecture, source: str, cpu_cores: float) -> _Found:
    curve = architecture.curve.scaled(max(cpu_cores, 0.0))
    return _Found(curve, source, architecture.name, architecture.speed)


def _holds(words: tuple[str, ...], cpu: tuple[str, ...]) -> bool:
    """Return whether `words` contain `cpu` as a whole; E5 2670 v2 is not E5 2670."""
    size = len(cpu)
    for at in range(len(words) - size + 1):
        if words[at : at + size] == cpu:
            following = words[at + size] if at + size < len(words) else ""
            return re.fullmatch(r"v\d+", following) is None
    return False


def _family(instance: str) -> str:
    """Return an instance type's provider and family, such as aws:m5 or azure:Dav5; else ""."""
    azure = _AZURE.fullmatch(instance)
    if azure is not None:
        series, features, version = azure.groups()
        kept = "".join(letter for letter in features if letter in _AZURE_HARDWARE)
        return f"azure:{series}{kept}{version or ''}"
    for provider, mark in (("aws", "."), ("gcp", "-")):
        family, found, _ = instance.partition(mark)
        if found:
            return f"{provider}:{family.lower()}"
    return ""


def _gpu_share(product: str | None, gpus: str | None, count: int) -> float:
    """Return physical GPUs per allocatable GPU; below 1 with MIG or time-slicing."""
    if product is None or not gpus or not gpus.isascii() or not gpus.isdigit():
        return 1.0
    is_cut = "-MIG-" in product or product.endswith("-SHARED")
    return int(gpus[:6]) / count if is_cut and 0 < int(gpus[:6]) < count else 1.0
