"""Version, notes, chart values, provenance and checksums of a release, without any program."""

import re
import subprocess
import tarfile
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from deploy.release.__main__ import main
from deploy.release.chart_values import NamedImage, values_by_digest
from deploy.release.checksums import NAME, checksum_faults, write_checksums
from deploy.release.faults import ReleaseFault
from deploy.release.making import MATERIALS, Wanted, materials
from deploy.release.notes import rehearsal_notes, release_notes, require_nothing_unreleased
from deploy.release.provenance import Origin, base_image, statement
from deploy.release.pushing import CHARTS, push
from deploy.release.signing import Signer
from deploy.release.source import require_no_other_tag, without_userinfo
from deploy.release.versions import project_version, version_faults

NEVER_MADE = "77.7.7"
ROOT = Path(__file__).resolve().parents[2]
VALUES = (ROOT / "deploy/helm/greensched/values.yaml").read_text()
IMAGES = {
    name: NamedImage(f"registry.example.com/greensched-{name}", f"sha256:{digit * 64}")
    for name, digit in (("extender", "a"), ("operator", "b"))
}
CHANGELOG = """# Changelog

## [Unreleased]

## [0.2.0] - 2026-12-01

### Added

- A second thing.

## [0.1.0] - 2026-11-24

- A first thing.
"""


def test_project_and_chart_tell_one_version() -> None:
    assert version_faults(ROOT, project_version(ROOT)) == []


@pytest.mark.parametrize("verb", ["verify", "push"])
def test_what_was_never_made_is_said_with_what_makes_it(
    verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([verb, "--version", NEVER_MADE, "--key", "cosign.key"]) == 1
    told = capsys.readouterr().err
    assert told.startswith(
        f"release: dist/release/{NEVER_MADE} does not exist: make it with make release VERSION="
    )
    assert len(told.splitlines()) == 1


def test_every_place_with_another_version_is_named_at_once() -> None:
    faults = version_faults(ROOT, "99.0.0")
    assert [fault.split(" is ")[0].split(" in ")[0] for fault in faults] == [
        "version",
        "version",
        "appVersion",
    ]


@pytest.mark.parametrize("wrong", ["v0.1.0", "0.1", "0.1.0-rc.1", "00.1.0", "", "latest"])
def test_what_is_no_version_is_refused(wrong: str) -> None:
    (fault,) = version_faults(ROOT, wrong)
    assert "write it as 1.2.3" in fault


@pytest.mark.parametrize(
    ("version", "notes"),
    [
        pytest.param("0.2.0", "### Added\n\n- A second thing.\n", id="up-to-the-next-version"),
        pytest.param("0.1.0", "- A first thing.\n", id="the-last-to-the-end"),
    ],
)
def test_the_notes_are_the_section_of_that_version(version: str, notes: str) -> None:
    assert release_notes(CHANGELOG, version) == notes


@pytest.mark.parametrize(
    ("changelog", "version", "sentence"),
    [
        pytest.param(CHANGELOG, "0.3.0", "has no section 0.3.0", id="absent"),
        pytest.param(CHANGELOG, "0.1", "has no section 0.1 ", id="part-of-another"),
        pytest.param(CHANGELOG, "Unreleased", "the section Unreleased is empty", id="empty"),
        pytest.param("## [0.3.0]\n\n- x\n", "0.3.0", "has no date", id="undated"),
    ],
)
def test_a_version_of_which_nothing_is_said_has_no_notes(
    changelog: str, version: str, sentence: str
) -> None:
    with pytest.raises(ReleaseFault, match="CHANGELOG") as refused:
        release_notes(changelog, version)
    assert sentence in str(refused.value)


def test_a_rehearsal_tells_of_what_is_not_released_until_its_version_has_a_section() -> None:
    ahead = CHANGELOG.replace("[Unreleased]\n", "[Unreleased]\n\n- A third thing.\n", 1)
    assert rehearsal_notes(ahead, "0.3.0") == "- A third thing.\n"
    assert rehearsal_notes(CHANGELOG, "0.1.0") == "- A first thing.\n"


def test_a_release_leaves_nothing_unreleased() -> None:
    require_nothing_unreleased(CHANGELOG)
    require_nothing_unreleased("# Changelog\n")
    ahead = CHANGELOG.replace("[Unreleased]\n", "[Unreleased]\n\n- A third thing.\n", 1)
    with pytest.raises(ReleaseFault, match="has text under Unreleased"):
        require_nothing_unreleased(ahead)


def test_what_is_not_released_has_a_version_that_is_not_released() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text()
    try:
        require_nothing_unreleased(changelog)
    except ReleaseFault:
        with pytest.raises(ReleaseFault, match="has no section"):
            release_notes(changelog, project_version(ROOT))


@pytest.mark.parametrize("page", ["docs/install.md", "docs/quickstart.md"])
def test_images_of_a_checkout_have_its_version_as_their_tag(page: str) -> None:
    built = r"greensched-\S+:(\d+\.\d+\.\d+)|\$REGISTRY-\$part:(\d+\.\d+\.\d+)"
    tags = {"".join(found) for found in re.findall(built, (ROOT / page).read_text())}
    assert tags == {project_version(ROOT)}


def test_a_tag_of_another_commit_is_no_release_of_this_one(tmp_path: Path) -> None:
    def git(*arguments: str) -> str:
        who = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "tag.gpgSign=false")
        command = ["git", "-C", str(tmp_path), *who, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    git("init", "--quiet")
    git("commit", "--quiet", "--no-gpg-sign", "--allow-empty", "--message=first")
    first = git("rev-parse", "HEAD")
    require_no_other_tag("1.2.3", first, tmp_path)
    git("tag", "--annotate", "--message=released", "v1.2.3")
    require_no_other_tag("1.2.3", first, tmp_path)
    git("commit", "--quiet", "--no-gpg-sign", "--allow-empty", "--message=second")
    with pytest.raises(ReleaseFault, match=f"the tag v1.2.3 is at commit {first[:12]}"):
        require_no_other_tag("1.2.3", git("rev-parse", "HEAD"), tmp_path)


def test_the_charts_values_name_the_images_by_digest_and_change_nothing_else() -> None:
    text = values_by_digest(VALUES, IMAGES)
    before, after = yaml.safe_load(VALUES), yaml.safe_load(text)
    for name, image in IMAGES.items():
        assert after[name]["image"].pop("digest") == image.digest
        assert after[name]["image"].pop("repository") == image.repository
        del before[name]["image"]["digest"], before[name]["image"]["repository"]
    assert after == before
    assert "no published image" in VALUES
    assert "no published image" not in text


def test_values_that_lack_an_image_are_refused() -> None:
    with pytest.raises(ReleaseFault, match="no agent.image with repository and digest"):
        values_by_digest(VALUES, {"agent": IMAGES["extender"]})


def test_a_release_is_pushed_where_its_chart_says_that_the_images_are(tmp_path: Path) -> None:
    values = tmp_path / "values.yaml"
    values.write_text(values_by_digest(VALUES, IMAGES))
    with tarfile.open(tmp_path / "greensched-0.1.0.tgz", "w:gz") as tar:
        tar.add(values, "greensched/values.yaml")
    with pytest.raises(ReleaseFault) as refused:
        push(tmp_path, "0.1.0", "127.0.0.1:1/other", Signer(None))
    assert str(refused.value).startswith(
        "the chart names registry.example.com/greensched-extender, but"
        " 127.0.0.1:1/other/greensched-extender would be pushed"
    )


def test_a_user_reads_from_where_a_release_is_installed() -> None:
    page = (ROOT / "docs/install.md").read_text()
    assert f"helm install greensched oci://$REGISTRY/{CHARTS}/greensched --version" in page


@given(st.dictionaries(st.sampled_from(sorted(IMAGES)), st.text("0123456789abcdef", min_size=64)))
def test_any_digest_is_taken_as_it_is(digests: dict[str, str]) -> None:
    images = {name: NamedImage("r/i", f"sha256:{digest}") for name, digest in digests.items()}
    after = yaml.safe_load(values_by_digest(VALUES, images))
    assert {name: after[name]["image"]["digest"] for name in images} == {
        name: image.digest for name, image in images.items()
    }


def test_the_provenance_names_every_file_the_commit_and_what_went_in() -> None:
    origin = Origin("https://git.example.com/g", "c0ffee", "0.1.0", "ci", "b", "e", {"lock": "1a"})
    told = statement(origin, {"b.whl": "22", "a.tgz": "11"})
    assert told["_type"] == "https://in-toto.io/Statement/v1"
    assert told["predicateType"] == "https://slsa.dev/provenance/v1"
    assert [each["name"] for each in told["subject"]] == ["a.tgz", "b.whl"]
    source, lock = told["predicate"]["buildDefinition"]["resolvedDependencies"]
    assert source["digest"] == {"gitCommit": "c0ffee"}
    assert lock == {"uri": "lock", "digest": {"sha256": "1a"}}


@pytest.mark.parametrize(
    ("told", "published"),
    [
        ("https://ci:s3cret@git.example.com/g.git", "https://git.example.com/g.git"),
        ("https://t0ken@git.example.com:8443/g", "https://git.example.com:8443/g"),
        ("https://u:p@ss@git.example.com/g", "https://git.example.com/g"),
        ("https://git.example.com/g", "https://git.example.com/g"),
        ("ssh://git@git.example.com/g", "ssh://git.example.com/g"),
        pytest.param("git@git.example.com:g", "git@git.example.com:g", id="scp-has-no-password"),
        pytest.param("", "", id="no-remote"),
    ],
)
def test_nobodys_password_gets_into_the_provenance(told: str, published: str) -> None:
    assert without_userinfo(told) == published


@pytest.mark.parametrize(
    ("dockerfile", "options", "found"),
    [
        ("ARG PYTHON_IMAGE=python:3.12-slim", "", None),
        (f"ARG PYTHON_IMAGE=python@sha256:{'a' * 64}", "", ("docker://python", "a" * 64)),
        (
            f"ARG PYTHON_IMAGE=python@sha256:{'a' * 64}",
            f"--build-arg PYTHON_IMAGE=mine@sha256:{'b' * 64} --pull",
            ("docker://mine", "b" * 64),
        ),
    ],
)
def test_the_base_is_reported_where_a_digest_names_it(
    dockerfile: str, options: str, found: tuple[str, str] | None
) -> None:
    assert base_image(dockerfile, options) == found


@pytest.mark.parametrize(
    ("on_debian", "bases"),
    [
        pytest.param(False, ["docker://python:3.12-slim"], id="the-dockerfiles"),
        pytest.param(True, [], id="made-of-debians-packages"),
    ],
)
def test_the_provenance_claims_no_base_that_is_not_in_the_images(
    on_debian: bool, bases: list[str]
) -> None:
    wanted = Wanted("1.2.3", "r", ("linux/amd64",), "", is_rehearsal=True, on_debian=on_debian)
    named = materials(wanted)
    assert [name for name in named if name.startswith("docker://")] == bases
    assert set(MATERIALS) <= named.keys()


def test_checksums_tell_of_a_changed_a_missing_and_an_added_file(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).write_text(name)
    write_checksums(tmp_path)
    (tmp_path / f"{NAME}.sigstore.json").write_text("{}")
    assert checksum_faults(tmp_path) == []
    (tmp_path / "a").write_text("A")
    (tmp_path / "b").unlink()
    (tmp_path / "d").write_text("d")
    assert checksum_faults(tmp_path) == [
        "a was changed: its checksum differs",
        "b is missing",
        f"d is not listed in {NAME}",
    ]
