"""Reads how the chart runs an image, from the pods of an installed release."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from greensched_core.errors import BadInput
from greensched_core.quantities import parse_quantity
from greensched_testbed.controlplane import ControlPlane
from greensched_testbed.images.containers import ContainerRun

_ACCOUNT_FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount"


@dataclass(frozen=True, slots=True)
class ChartPods:
    """The pods of an installed release, as containers on this machine."""

    plane: ControlPlane
    namespace: str
    folder: Path  # for the files that pods mount

    def of_deployment(self, name: str, *, api_port: int) -> ContainerRun:
        """Return how the first container of a Deployment runs, with an API server on 127.0.0.1.

        Raises BadInput if its pod uses something that is not supported here.
        """
        spec = self._get("deployment", name)["spec"]["template"]["spec"]
        return self._run(spec, api_port)

    def of_hook(self, name: str, *, api_port: int) -> ContainerRun:
        """Return how the first container of a hook's Job or pod runs.

        This creates its service account and rights. Raises BadInput if there is no such hook.
        """
        text = self.plane.helm("get", "hooks", self.namespace, "--namespace", self.namespace)
        hooks = [each for each in yaml.safe_load_all(text) if each]
        running = [each for each in hooks if each["kind"] in ("Job", "Pod")]
        for each in hooks:
            if each not in running:
                self.plane.kubectl("apply", "-f", "-", stdin=json.dumps(each))
        for each in running:
            if each["metadata"]["name"] == name:
                spec = each["spec"]
                return self._run(spec["template"]["spec"] if "template" in spec else spec, api_port)
        raise BadInput(f"the chart has no hook {name}")

    def _run(self, found: Mapping[str, Any], api_port: int) -> ContainerRun:
        container = found["containers"][0]
        files = {_ACCOUNT_FOLDER: self._account(found["serviceAccountName"])}
        writable = []
        volumes = {each["name"]: each for each in found.get("volumes", ())}
        for mount in container.get("volumeMounts", ()):
            volume = volumes[mount["name"]]
            if "emptyDir" in volume:
                writable.append(mount["mountPath"])
            elif "configMap" in volume:
                name = volume["configMap"]["name"]
                files[mount["mountPath"]] = self._written(name, self._data(name))
            else:
                raise BadInput(f"the volume {mount['name']} has a kind that is not supported here")
        environment = {
            "KUBERNETES_SERVICE_HOST": "127.0.0.1",
            "KUBERNETES_SERVICE_PORT": str(api_port),
        }
        for source in container.get("envFrom", ()):
            environment |= self._data(source["configMapRef"]["name"])
        environment |= {each["name"]: self._value(each) for each in container.get("env", ())}
        return ContainerRun(
            tuple(container.get("args", ())),
            environment,
            int(parse_quantity(container["resources"]["limits"]["memory"])),
            files,
            tuple(writable),
        )

    def _value(self, variable: Mapping[str, Any]) -> str:
        if "value" in variable:
            return str(variable["value"])
        field = variable["valueFrom"].get("fieldRef", {}).get("fieldPath", "")
        if field.startswith("metadata."):
            return f"pod-{field.removeprefix('metadata.')}"
        raise BadInput(f"{variable['name']}: its source is not supported here")

    def _account(self, name: str) -> Path:
        token = self.plane.service_account_token(self.namespace, name)
        content = {
            "token": token,
            "ca.crt": self.plane.ca_file.read_text(),
            "namespace": self.namespace,
        }
        return self._written(f"account-{name}", content)

    def _written(self, name: str, content: Mapping[str, str]) -> Path:
        """Return a folder of world-readable files, as a node mounts them for its pod."""
        folder = self.folder / name
        folder.mkdir(parents=True, exist_ok=True)
        for file, text in content.items():
            (folder / file).write_text(text)
            (folder / file).chmod(0o644)
        folder.chmod(0o755)
        return folder

    def _data(self, config_map: str) -> dict[str, str]:
        data: dict[str, str] = self._get("configmap", config_map).get("data", {})
        return data

    def _get(self, kind: str, name: str) -> dict[str, Any]:
        raw = self.plane.kubectl("get", kind, name, "-n", self.namespace, "-o", "json")
        found: dict[str, Any] = json.loads(raw)
        return found
