"""Binds a pod to a node; binding it to the same node twice is not an error."""

from urllib.parse import quote

import msgspec

from greensched_core.errors import ApiUnavailable
from greensched_core.kubernetes_api import ApiClient
from greensched_core.objects import PodObject
from greensched_extender.protocol import BindingArgs, encode

_CONFLICT = 409
_decode_pod = msgspec.json.Decoder(PodObject).decode


async def bind(client: ApiClient, args: BindingArgs) -> str:
    """Bind the pod to the node; return "" if it is bound there now, else what went wrong.

    kube-scheduler repeats a call that timed out although our binding succeeded
    (kubernetes/kubernetes#96579), so a pod that is already bound to the node is a success.
    """
    namespace, name = quote(args.PodNamespace, safe=""), quote(args.PodName, safe="")
    pod_path = f"/api/v1/namespaces/{namespace}/pods/{name}"
    metadata: dict[str, str] = {"name": args.PodName, "namespace": args.PodNamespace}
    if args.PodUID:
        metadata["uid"] = args.PodUID
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": metadata,
        "target": {"apiVersion": "v1", "kind": "Node", "name": args.Node},
    }
    try:
        await client.create(f"{pod_path}/binding", encode(binding))
    except ApiUnavailable as fault:
        if fault.status != _CONFLICT:
            return str(fault)
        return await _conflict(client, args, pod_path, fault)
    return ""


async def _conflict(
    client: ApiClient, args: BindingArgs, pod_path: str, refusal: ApiUnavailable
) -> str:
    try:
        pod = _decode_pod(await client.get(pod_path))
    except (ApiUnavailable, msgspec.DecodeError) as fault:
        return f"{refusal}; and the pod cannot be read: {fault}"
    name = f"pod {args.PodNamespace}/{args.PodName}"
    if args.PodUID and pod.metadata.uid != args.PodUID:
        return f"{name} has been replaced by another pod: uid {pod.metadata.uid}, not {args.PodUID}"
    if pod.spec.nodeName == args.Node:
        return ""
    if pod.spec.nodeName:
        return f"{name} is bound to {pod.spec.nodeName}, not to {args.Node}"
    return str(refusal)
