from pathlib import Path

from greensched_testbed.end_to_end.our_images import how_to_use


def test_images_are_named_as_docker_real_nodes_and_helm_take_them() -> None:
    archives = {
        f"localhost:5000/greensched-{part}:12": Path(f"/kept/{part}.tar")
        for part in ("extender", "operator")
    }
    told = list(how_to_use(archives))
    assert told[1:3] == ["docker load -i /kept/extender.tar", "docker load -i /kept/operator.tar"]
    assert "--image /kept/extender.tar --image /kept/operator.tar" in told[5]
    assert told[-1] == (
        "--set operator.image.repository=localhost:5000/greensched-operator"
        " --set-string operator.image.tag=12"
    )
