import os
from collections.abc import Callable
from pathlib import Path

import pytest
from kubernetes import config

from greensched_core.errors import BadInput
from greensched_core.kubeconfig.files import read_context

Write = Callable[..., Path]


def joined(*paths: Path) -> Path:
    return Path(os.pathsep.join(map(str, paths)))


def test_the_current_context_has_its_cluster_its_user_and_its_namespace(write: Write) -> None:
    found = read_context(write(user={"token": "t"}), None)
    assert (found.name, found.namespace, found.user.text("token")) == ("here", "here-work", "t")


def test_a_context_without_a_namespace_is_of_the_default_one(write: Write) -> None:
    bare = [{"name": "here", "context": {"cluster": "here"}}]
    assert read_context(write(contexts=bare), None).namespace == "default"


def test_of_several_files_the_first_that_says_something_counts(write: Write) -> None:
    first = write("a", user={"token": "first"})
    second = write("a", user={"token": "second"}, folder="b", namespace="other")
    third = write("c")
    found = read_context(joined(first, second, third), None)
    assert (found.name, found.user.text("token")) == ("a", "first")
    assert read_context(joined(first, third), "c").namespace == "c-work"


def test_the_files_are_those_of_the_variable_else_the_usual_one(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("config", folder="home/.kube").rename(Path.home() / ".kube/config")
    assert read_context(None, None).name == "config"
    absent = Path("absent")
    monkeypatch.setenv("KUBECONFIG", str(joined(absent, write("named"))))
    assert read_context(None, None).name == "named"


def test_relative_paths_begin_at_their_own_file(write: Write, tmp_path: Path) -> None:
    first = write("a", folder="one")
    second = write("b", folder="two", cluster={"certificate-authority": "ca.crt"})
    found = read_context(joined(first, second), "b")
    assert found.cluster.path("certificate-authority") == tmp_path / "two" / "ca.crt"


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        pytest.param({"current-context": ""}, "name one by --context", id="none-is-current"),
        pytest.param({"current-context": "hree"}, r"no context 'hree' \(close: here\)", id="typo"),
        pytest.param({"current-context": "xyz"}, "no context 'xyz'; there are: here", id="other"),
        pytest.param({"clusters": []}, "no cluster 'here'; there are: none", id="no-cluster"),
        pytest.param({"clusters": [{"name": "here"}]}, "cluster 'here' has no server", id="bare"),
        pytest.param({"users": None}, "there is no user 'here'", id="no-user"),
        pytest.param({"users": 3}, "users is not a list", id="no-list"),
        pytest.param({"users": [{"user": {}}]}, "an entry has no name", id="no-name"),
        pytest.param({"users": [{"name": "here", "user": 3}]}, "is not a mapping", id="no-mapping"),
    ],
)
def test_what_is_wrong_is_a_sentence(write: Write, changed: dict[str, object], told: str) -> None:
    with pytest.raises(BadInput, match=rf"kubeconfig .*here\.yaml: .*{told}"):
        read_context(write(**changed), None)


@pytest.mark.parametrize("context", [None, "b"])
def test_kubernetes_own_client_reads_the_same(write: Write, context: str | None) -> None:
    both = joined(write("a"), write("b", **{"current-context": "a"}))
    found = read_context(both, context)
    contexts, active = config.list_kube_config_contexts(str(both))  # type: ignore[no-untyped-call]  # untyped
    theirs = next((each for each in contexts if each["name"] == context), active)
    assert theirs["name"] == found.name
    assert theirs["context"]["namespace"] == found.namespace
