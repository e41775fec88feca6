"""Make, verify and push a release: `make release VERSION=… REGISTRY=…`; docs/releasing.md."""

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
    """Run the verb of the first argument; return 0, or 1 after printing what is wrong."""
    args = _parser().parse_args(arguments)
    try:
        _VERBS[args.verb](args)
    except GreenSchedError as fault:
        print(f"release: {fault}", file=sys.stderr)
        return 1
    return 0


def _make(args: argparse.Namespace) -> None:
    platforms = tuple(args.platforms.split(","))
    if not args.rehearsal and (args.registry == NOWHERE or not args.key):
        raise ReleaseFault(
            "a release needs a registry and a signer: set REGISTRY=… KEY=cosign.key (or"
            " KEY=keyless in a workflow); REHEARSAL=1 needs neither"
        )
    if args.on_debian and not args.rehearsal:
        raise ReleaseFault("BASE=debian needs REHEARSAL=1: a release names its base by digest")
    options = (args.registry, platforms, args.build_options, args.rehearsal, args.on_debian)
    folder = make(Wanted(args.version, *options), Signer(_private(args)))
    print(f"release: {folder.relative_to(ROOT)} contains")
    for path in sorted(folder.iterdir()):
        print(f"  {path.stat().st_size:>12,}  {path.name}")


def _verify(args: argparse.Namespace) -> None:
    for line in verify(_made(args), args.version, _verifier(args)):
        print(f"ok  {line}")


def _push(args: argparse.Namespace) -> None:
    folder, verifier = _made(args), _verifier(args)
    verify(folder, args.version, verifier)
    references = push(folder, args.version, args.registry, Signer(_private(args)))
    verify_pushed(references, verifier)
    for reference in references:
        print(f"pushed and signed  {reference}")


def _notes(args: argparse.Namespace) -> None:
    require_version(ROOT, args.version)
    print(release_notes((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), args.version), end="")


_VERBS = {"make": _make, "verify": _verify, "push": _push, "notes": _notes}


def _made(args: argparse.Namespace) -> Path:
    """Return the folder of a release; raise ReleaseFault if it was never made."""
    folder = ROOT / "dist/release" / str(args.version)
    if not folder.is_dir():
        raise ReleaseFault(
            f"{folder.relative_to(ROOT)} does not exist: make it with make release"
            f" VERSION={args.version} (REGISTRY=… KEY=…, or REHEARSAL=1)"
        )
    return folder


def _private(args: argparse.Namespace) -> Path | None:
    if args.key == KEYLESS:
        return None
    return Path(args.key) if args.key else make_key(ROOT / "build/release/rehearsal")


def _verifier(args: argparse.Namespace) -> Verifier:
    private = _private(args)
    public = private.with_suffix(".pub") if private else None
    return Verifier(public, args.identity, args.issuer)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m deploy.release", description=__doc__)
    parser.add_argument("verb", choices=sorted(_VERBS))
    add = parser.add_argument
    add("--version", required=True, help="version in pyproject.toml and Chart.yaml, as 1.2.3")
    add("--registry", default=NOWHERE, help="registry of the images")
    add("--platforms", default=",".join(PLATFORMS), help="of the images, separated by commas")
    add("--build-options", default="", help="further options of buildah bud")
    add("--key", default="", help="cosign's private key, with its .pub beside it; or keyless")
    add("--identity", default="", help="identity of a keyless signer, a regular expression")
    add("--issuer", default="", help="issuer of that identity")
    add("--on-debian", action="store_true", help="use a base of Debian packages, for a rehearsal")
    add(
        "--rehearsal",
        action="store_true",
        help="accept changed files, and notes of Unreleased if the version has none",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
