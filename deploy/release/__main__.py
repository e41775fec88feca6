"""make, verify and push a release: `make release VERSION=… REGISTRY=…`; docs/releasing.md."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from deploy.release.faults import ReleaseFault
from deploy.release.images import PLATFORMS
from deploy.release.making import Wanted, make
from deploy.release.notes import release_notes
from deploy.release.programs import ROOT
from deploy.release.pushing import push, verify_pushed
from deploy.release.signing import Signer, Verifier, make_key
from deploy.release.verifying import verify
from deploy.release.versions import require_version
from greensched_core.errors import GreenSchedError

KEYLESS = "keyless"
NOWHERE = "registry.example.com/greensched"


def main(arguments: Sequence[str]) -> int:
    """Do what the first argument says; return 0, or 1 after saying what is wrong."""
    told = _parser().parse_args(arguments)
    try:
        _VERBS[told.verb](told)
    except GreenSchedError as fault:
        print(f"release: {fault}", file=sys.stderr)
        return 1
    return 0


def _make(told: argparse.Namespace) -> None:
    platforms = tuple(told.platforms.split(","))
    if not told.rehearsal and (told.registry == NOWHERE or not told.key):
        raise ReleaseFault(
            "say where the images will be and who signs: REGISTRY=… KEY=cosign.key (or"
            " KEY=keyless in a workflow); REHEARSAL=1 goes without"
        )
    if told.on_debian and not told.rehearsal:
        raise ReleaseFault("BASE=debian is for rehearsals: a release names its base by digest")
    options = (told.registry, platforms, told.build_options, told.rehearsal, told.on_debian)
    folder = make(Wanted(told.version, *options), Signer(_private(told)))
    print(f"release: {folder.relative_to(ROOT)} holds")
    for path in sorted(folder.iterdir()):
        print(f"  {path.stat().st_size:>12,}  {path.name}")


def _verify(told: argparse.Namespace) -> None:
    for line in verify(_made(told), told.version, _verifier(told)):
        print(f"ok  {line}")


def _push(told: argparse.Namespace) -> None:
    folder, verifier = _made(told), _verifier(told)
    verify(folder, told.version, verifier)
    references = push(folder, told.version, told.registry, Signer(_private(told)))
    verify_pushed(references, verifier)
    for reference in references:
        print(f"pushed and signed  {reference}")


def _notes(told: argparse.Namespace) -> None:
    require_version(ROOT, told.version)
    print(release_notes((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), told.version), end="")


_VERBS = {"make": _make, "verify": _verify, "push": _push, "notes": _notes}


def _made(told: argparse.Namespace) -> Path:
    """Return the folder of a release; raise ReleaseFault where it was never made."""
    folder = ROOT / "dist/release" / str(told.version)
    if not folder.is_dir():
        raise ReleaseFault(
            f"{folder.relative_to(ROOT)} is not there: make release VERSION={told.version} makes it"
            " (REGISTRY=… KEY=…, or REHEARSAL=1)"
        )
    return folder


def _private(told: argparse.Namespace) -> Path | None:
    if told.key == KEYLESS:
        return None
    return Path(told.key) if told.key else make_key(ROOT / "build/release/rehearsal")


def _verifier(told: argparse.Namespace) -> Verifier:
    private = _private(told)
    public = private.with_suffix(".pub") if private else None
    return Verifier(public, told.identity, told.issuer)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m deploy.release", description=__doc__)
    parser.add_argument("verb", choices=sorted(_VERBS))
    add = parser.add_argument
    add("--version", required=True, help="what pyproject.toml and Chart.yaml say, as 1.2.3")
    add("--registry", default=NOWHERE, help="where the images will be")
    add("--platforms", default=",".join(PLATFORMS), help="of the images, with commas")
    add("--build-options", default="", help="further ones of buildah bud")
    add("--key", default="", help="cosign's private key, its .pub beside it; or keyless")
    add("--identity", default="", help="of who signed keyless, a regular expression")
    add("--issuer", default="", help="of that identity")
    add("--on-debian", action="store_true", help="on a base of Debian's packages, for a rehearsal")
    add(
        "--rehearsal",
        action="store_true",
        help="from changed files, with notes of Unreleased if the version has none",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
