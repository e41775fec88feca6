"""Pushes a release's images and chart to a registry, and signs them there."""

from pathlib import Path

from deploy.release.faults import ReleaseFault
from deploy.release.images import COMPONENTS, read_archive
from deploy.release.programs import run
from deploy.release.signing import Signer, Verifier
from deploy.release.verifying import chart_values

CHARTS = "charts"  # the folder of a registry that holds the chart


def push(folder: Path, version: str, registry: str, signer: Signer) -> list[str]:
    """Push and sign images and chart; return their references by digest.

    An image keeps the digest of its archive, which the chart names. Raises ReleaseFault, and pushes
    nothing, if the chart names images of another registry.
    """
    _require_named(folder, version, registry)
    references = []
    for component in COMPONENTS:
        archive = folder / f"greensched-{component}-{version}.oci.tar"
        digest, _ = read_archive(archive)
        name = f"{registry}/greensched-{component}"
        copy = ("copy", "--quiet", "--all", "--preserve-digests", *_plain(registry, "--dest-tls"))
        run("skopeo", *copy, f"oci-archive:{archive}:{version}", f"docker://{name}:{version}")
        references.append(f"{name}@{digest}")
    chart = folder / f"greensched-{version}.tgz"
    plain = ("--plain-http",) if _is_local(registry) else ()
    run("helm", "push", *plain, chart, f"oci://{registry}/{CHARTS}")
    name = f"{registry}/{CHARTS}/greensched"
    insecure = ("--insecure",) if _is_local(registry) else ()
    digest = run("crane", "digest", *insecure, f"{name}:{version}").strip()
    references.append(f"{name}@{digest}")
    for reference in references:
        signer.sign_image(reference)
    return references


def verify_pushed(references: list[str], verifier: Verifier) -> None:
    """Raise ReleaseFault unless the trusted signer signed each reference."""
    for reference in references:
        verifier.require_image(reference)


def _require_named(folder: Path, version: str, registry: str) -> None:
    values = chart_values(folder, version)
    for component in COMPONENTS:
        named = values[component]["image"]["repository"]
        pushed = f"{registry}/greensched-{component}"
        if named != pushed:
            raise ReleaseFault(
                f"the chart names {named}, but {pushed} would be pushed: use the registry for which"
                " the release was made, or make it for this one (`make release REGISTRY=…`)"
            )


def _is_local(registry: str) -> bool:
    return registry.startswith(("127.0.0.1:", "localhost:"))


def _plain(registry: str, option: str) -> tuple[str, ...]:
    return (f"{option}-verify=false",) if _is_local(registry) else ()
