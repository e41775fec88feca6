"""The manifests of examples/stress/, for users of kubectl alone: a suite as plain Jobs."""

from collections.abc import Mapping
from typing import Any

import yaml

from greensched_testbed.stress.job_objects import Images, job_object, namespace_object
from greensched_testbed.stress.strategies import DEFAULT, HELD, Strategy
from greensched_testbed.stress.suite import Room, StressKind, Suite, SuiteOptions, make_suite

_NAMESPACE = "greensched-stress"
_SUITE = SuiteOptions(jobs=7, gpu_jobs=1, wait_s=3600.0)
_ROOM = Room(8.0, 16 * 2.0**30, has_gpus=True)
_HEAD = (
    "# Written by `make docs` from greensched_testbed.stress; docs/stress.md says how to use it.\n"
)


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def stress_examples() -> Mapping[str, str]:
    """Return the files' texts by their paths."""
    suite = make_suite(_SUITE, _ROOM)
    return {
        "examples/stress/namespace.yaml": _file([namespace_object(_NAMESPACE)]),
        "examples/stress/default.yaml": _file(_jobs(suite, DEFAULT)),
        "examples/stress/greensched.yaml": _file(_jobs(suite, HELD)),
        "examples/stress/gpu.yaml": _file(_jobs(suite, HELD, on_gpus=True)),
    }


def _jobs(suite: Suite, strategy: Strategy, *, on_gpus: bool = False) -> list[dict[str, Any]]:
    return [
        job_object(job, strategy, Images())
        for job in suite.jobs
        if (job.kind is StressKind.GPU) is on_gpus
    ]


def _file(objects: list[dict[str, Any]]) -> str:
    return _HEAD + yaml.dump_all(objects, Dumper=_Dumper, sort_keys=False, width=100)
