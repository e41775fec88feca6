"""The catalogue's entries: machines, cloud architectures and GPUs, each with its source."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

from greensched_core.power.curves import PowerCurve

# SPECpower_ssj2008's result: ssj_ops summed over ten loads, by watts summed over these and active
# idle. The loads (100 % … 10 %) add up to 5.5 times full load.
_LOADS_IN_FULL_LOADS = 5.5
_CPU_NOISE = frozenset({"r", "tm", "cpu", "intel", "amd", "processor"})
Words = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Machine:
    """A whole server without GPUs, measured at the wall."""

    name: str
    cpus: tuple[Words, ...]  # words of its CPU model's names, in order
    cores: int
    threads: int  # logical CPUs, what Kubernetes counts
    curve: PowerCurve
    speed: float  # throughput per logical CPU, relative to the reference machine's
    source: str


@dataclass(frozen=True, slots=True)
class Architecture:
    """Power and speed of one vCPU of a cloud instance."""

    name: str
    curve: PowerCurve  # per vCPU
    speed: float
    source: str


@dataclass(frozen=True, slots=True)
class KnownGpu:
    """One GPU: watts when idle and at its power limit."""

    name: str
    product: frozenset[str]  # words of its product name
    idle_w: float
    peak_w: float
    source: str


@dataclass(frozen=True, slots=True)
class Gpu:
    """The GPUs of one model on one node."""

    model: str
    count: int
    idle_w: float  # watts per GPU
    peak_w: float  # watts per GPU


@dataclass(frozen=True)
class Catalogue:
    """All known hardware."""

    machines: Mapping[str, Machine] = field(repr=False)
    families: Mapping[str, Architecture] = field(repr=False)  # by instance family: aws:m5
    gpus: Mapping[str, KnownGpu] = field(repr=False)
    family_gpus: Mapping[str, KnownGpu] = field(repr=False)  # by instance family
    default_cpu: Architecture
    default_gpu: KnownGpu


def cpu_words(text: str) -> Words:
    """Return the words of a CPU's name in lower case, without maker and filler."""
    spaced = re.sub(r"(epyc|xeon|platinum|gold|altra)(?=\d)", r"\1 ", text.lower())
    return tuple(word for word in re.findall(r"[a-z0-9]+", spaced) if word not in _CPU_NOISE)


@cache
def shipped_catalogue() -> Catalogue:
    """Return the catalogue shipped in the package, read once."""
    text = resources.files("greensched_core.power").joinpath("catalogue.toml").read_text("utf-8")
    return _catalogue(tomllib.loads(text))


def _catalogue(table: Mapping[str, Any]) -> Catalogue:
    entries = table["machines"]
    reference = _throughput(entries[table["reference"]])
    speeds = {
        name: _throughput(entry) / reference
        for name, entry in entries.items()
        if "ssj_ops_per_watt" in entry
    }
    machines = {name: _machine(name, entry, speeds) for name, entry in entries.items()}
    gpus = {name: _gpu(name, entry) for name, entry in table["gpus"].items()}
    return Catalogue(
        machines=machines,
        families=_families(table["families"], table["architectures"], speeds),
        gpus=gpus,
        family_gpus={
            family: gpus[name]
            for name, entry in table["gpus"].items()
            for family in entry.get("instances", ())
        },
        default_cpu=_architecture("generic-cpu", table["defaults"]["cpu"], {}, 1),
        default_gpu=_gpu("generic-gpu", table["defaults"]["gpu"]),
    )


def _throughput(entry: Mapping[str, Any]) -> float:
    """Return ssj_ops/s per logical CPU at full load."""
    total = entry["ssj_ops_per_watt"] * sum(_curve(entry).watts)
    return float(total / _LOADS_IN_FULL_LOADS / entry["threads"])


def _curve(entry: Mapping[str, Any]) -> PowerCurve:
    if "watts" in entry:
        return PowerCurve(tuple(float(watts) for watts in entry["watts"]))
    return PowerCurve.from_idle_and_peak(entry["idle_w"], entry["full_w"])


def _speed(name: str, entry: Mapping[str, Any], speeds: Mapping[str, float]) -> float:
    return speeds.get(entry.get("speed_of", name), 1.0)


def _machine(name: str, entry: Mapping[str, Any], speeds: Mapping[str, float]) -> Machine:
    return Machine(
        name=name,
        cpus=tuple(cpu_words(cpu) for cpu in entry["cpu"]),
        cores=entry["cores"],
        threads=entry["threads"],
        curve=_curve(entry),
        speed=_speed(name, entry, speeds),
        source=entry["source"],
    )


def _architecture(
    name: str, entry: Mapping[str, Any], speeds: Mapping[str, float], threads_per_vcpu: int
) -> Architecture:
    return Architecture(
        name=name if threads_per_vcpu == 1 else f"{name}-core",
        curve=_curve(entry).scaled(threads_per_vcpu),
        speed=_speed(name, entry, speeds) * threads_per_vcpu,
        source=entry["source"],
    )


def _families(
    families: Mapping[str, Any], architectures: Mapping[str, Any], speeds: Mapping[str, float]
) -> dict[str, Architecture]:
    found: dict[str, Architecture] = {}
    for label, group in families.items():
        provider = label.partition("-")[0]
        for name, members in group["architectures"].items():
            architecture = _architecture(
                name, architectures[name], speeds, group.get("threads_per_vcpu", 1)
            )
            found |= {f"{provider}:{family}": architecture for family in members}
    return found


def _gpu(name: str, entry: Mapping[str, Any]) -> KnownGpu:
    return KnownGpu(
        name=name,
        product=frozenset(entry.get("product", ())),
        idle_w=float(entry["idle_w"]),
        peak_w=float(entry["peak_w"]),
        source=entry["source"],
    )
