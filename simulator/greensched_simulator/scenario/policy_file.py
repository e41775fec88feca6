"""The GreenPolicy that a scenario names: the manifest that users apply to a cluster."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from greensched_core import labels
from greensched_core.custom_resources.fields import all_faults, fields_of
from greensched_core.errors import BadInput
from greensched_core.quoting import near, quoted
from greensched_operator.objects.green_policy import GreenPolicy, Mode, parse
from greensched_operator.objects.job_power_profile import ProfileFields, parse_job_power_profile
from greensched_policies.learned.model_fields import ONNX
from greensched_policies.library.nets import CandidateNet
from greensched_simulator.scenario.file import Document, FaultsByPlace, FieldPlace, read_documents

KIND, PROFILE_KIND = "GreenPolicy", "JobPowerProfile"
_API_VERSION = f"{labels.GROUP}/{labels.VERSION}"
_PARTS = ("apiVersion", "kind", "metadata", "spec", "status")
# Of ObjectMeta (kubernetes.io/docs/reference/kubernetes-api/common-definitions/object-meta).
_METADATA = (
    *("name", "generateName", "namespace", "labels", "annotations", "finalizers"),
    *("managedFields", "ownerReferences", "creationTimestamp", "deletionGracePeriodSeconds"),
    *("deletionTimestamp", "generation", "resourceVersion", "selfLink", "uid"),
)
# A DNS subdomain (kubernetes.io/docs/concepts/overview/working-with-objects/names).
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LONGEST_NAME = 253


class PolicyFromFile(NamedTuple):
    """A GreenPolicy, the net of its bundle that chooses starts, and what is not simulated of it."""

    policy: GreenPolicy
    when_net: CandidateNet | None = None  # None: a rule chooses starts
    notes: tuple[str, ...] = ()


def read_policy_file(path: Path) -> PolicyFromFile:
    """Return the one GreenPolicy in a YAML file, which may hold other objects too.

    The ConfigMap with its bundle, if it names one, must be among them. Raises BadInput if there is
    not exactly one GreenPolicy, if the API server or the operator would refuse it, and if it asks
    for what the simulator cannot do.
    """
    documents = read_documents(path)
    policies = [each for each in documents if each.content.get("kind") == KIND]
    if len(policies) != 1:
        raise BadInput(f"{path} holds {len(policies)} objects of kind {KIND}; it must hold one")
    (document,) = policies
    if faults := list(_faults(document)):
        raise BadInput(_told(path, [_with_line(document, *each) for each in faults]))
    policy = parse(document.content)
    if refused := policy.faults or [
        _with_line(document, *each) for each in _not_simulated(policy, document.content)
    ]:
        raise BadInput(_told(path, refused))
    _refuse_profiles(path, documents)
    others = [each.content for each in documents if each is not document]
    try:
        found = _with_net(policy, others)
    except BadInput as fault:
        raise BadInput(f"{path}: {fault}") from None
    return found._replace(notes=(*found.notes, *_notes_on_others(path, policy, others)))


def _told(path: Path, faults: Sequence[str]) -> str:
    """Return the faults of a file, each on a line of its own if there are several."""
    return f"{path}: {faults[0]}" if len(faults) == 1 else "\n  ".join([f"{path}:", *faults])


def _faults(document: Document, kind: type[Any] = GreenPolicy) -> FaultsByPlace:
    """Yield what `kubectl apply` would refuse, or keep only half of."""
    whole = document.content
    for place in document.repeated:
        yield place, f"{place[-1]} is given twice"
    for name in whole:
        if name not in _PARTS:
            yield (name,), f"{name}: an object has no such part{near(name, _PARTS)}"
    if whole.get("apiVersion") != _API_VERSION:
        yield ("apiVersion",), f"apiVersion is {whole.get('apiVersion')}; write {_API_VERSION}"
    yield from _faults_of_metadata(whole.get("metadata"))
    spec = whole.get("spec")
    yield from all_faults(fields_of(kind), {} if spec is None else spec, ("spec",))


def _faults_of_metadata(metadata: object) -> FaultsByPlace:
    if not isinstance(metadata, Mapping) or metadata.get("name") in (None, ""):
        yield ("metadata",), "metadata.name is missing"
        return
    name = metadata["name"]
    if not isinstance(name, str):
        yield ("metadata", "name"), f"metadata.name: {name} is not text; write it in quotes"
    elif len(name) > _LONGEST_NAME or not _NAME.fullmatch(name):
        yield (
            ("metadata", "name"),
            f"metadata.name: {quoted(name)} is no name of an object: lower-case letters, digits, "
            "- and ., such as default",
        )
    for each in ("labels", "annotations"):
        texts = metadata.get(each) or {}
        if not isinstance(texts, Mapping) or not all(isinstance(x, str) for x in texts.values()):
            yield (
                ("metadata", each),
                f"metadata.{each}: each value must be text, in quotes",
            )
    for each in metadata:
        if each not in _METADATA:
            place = ("metadata", str(each))
            yield place, f"metadata.{each}: there is no such field{near(str(each), _METADATA)}"


def _with_line(document: Document, place: FieldPlace, message: str) -> str:
    while place and place not in document.lines:
        place = place[:-1]
    return f"line {document.lines[place]}: {message}" if place else message


def _refuse_profiles(path: Path, documents: Sequence[Document]) -> None:
    """Raise BadInput for JobPowerProfiles that a cluster would refuse; they are not simulated."""
    for document in documents:
        if document.content.get("kind") != PROFILE_KIND:
            continue
        name = f"{PROFILE_KIND} {_mapping(document.content.get('metadata')).get('name') or ''}"
        faults = [_with_line(document, *each) for each in _faults(document, ProfileFields)]
        if refused := faults or parse_job_power_profile(document.content).faults:
            raise BadInput(_told(path, [f"{name.strip()}: {each}" for each in refused]))


def _not_simulated(policy: GreenPolicy, content: Mapping[str, Any]) -> FaultsByPlace:
    if policy.mode != Mode.ENFORCE:
        has_mode = (content.get("spec") or {}).get("mode") is not None
        given = "is" if has_mode else "is not given, so it is"
        yield (
            ("spec", "mode"),
            f"spec.mode {given} {policy.mode}, with which nothing is held; set `mode: enforce` "
            "here, or simulate run-now",
        )
    if policy.bundle_config_map is not None and policy.when_policy != ONNX:
        yield ("spec", "bundle"), f"spec.bundle is read only with whenPolicy: {ONNX}"


def _notes_on_others(path: Path, policy: GreenPolicy, others: Sequence[Any]) -> Iterator[str]:
    """Yield a note on the objects beside the policy and its bundle: they change nothing."""
    bundle = "ConfigMap", policy.bundle_config_map
    named = [(each.get("kind"), _mapping(each.get("metadata")).get("name")) for each in others]
    unused = [
        f"{kind or 'a document without kind'} {name or ''}".strip()
        for kind, name in named
        if (kind, name) != bundle
    ]
    if unused:
        yield f"{path.name}: of no effect on the simulation: {', '.join(unused)}"


def _mapping(found: object) -> Mapping[str, Any]:
    return found if isinstance(found, Mapping) else {}


def _with_net(policy: GreenPolicy, objects: Sequence[Any]) -> PolicyFromFile:
    if policy.when_policy != ONNX:
        return PolicyFromFile(policy)
    # onnxruntime, which checks bundles, takes a tenth of a second to load.
    from greensched_simulator.scenario.bundled_net import net_among, shipped_net

    name = policy.bundle_config_map
    if name is None:
        return PolicyFromFile(policy, shipped_net())
    net, has_where = net_among(objects, name)
    note = (
        f"{policy.title}: the `where` head of ConfigMap {name} is not simulated; the `where` rule "
        "of each policy chooses nodes"
    )
    return PolicyFromFile(policy, net, (note,) if has_where else ())
