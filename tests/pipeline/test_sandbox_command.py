"""``excise sandbox``: the sandbox of an exported environment, served to another process."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from excise.datasets.exports.registry import export
from excise.pipeline.exit_codes import FAILED, USAGE
from excise.pipeline.services.export_materials import SetMaterials


@pytest.fixture(scope="module")
def image(stored: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the environment's image."""
    folder = tmp_path_factory.mktemp("export")
    with SetMaterials(stored.taskset) as materials:
        export(stored.taskset, "harbor", folder, materials)
    (found,) = [path for path in (folder / "images").iterdir() if path.is_dir()]
    return found


def answers(excise: Any, stored: Any, image: Path, *commands: str, stdin: bytes = b"") -> list[dict[str, Any]]:
    """What the sandbox answers to shell commands, all of which get ``stdin``."""
    requests = [
        {"argv": ["sh", "-c", command], "timeout_s": 20, "stdin": base64.b64encode(stdin).decode()}
        for command in commands
    ]
    lines = "".join(json.dumps(request) + "\n" for request in requests)
    done = excise("sandbox", image, "--cache", stored.cache, "--memory-mb", "256", input=lines)
    assert done.returncode == 0, done.stderr
    first, *rest = [json.loads(line) for line in done.stdout.splitlines()]
    assert first == {"ready": True}
    return rest


def output(answer: dict[str, Any]) -> str:
    return base64.b64decode(answer["stdout"]).decode()


@pytest.mark.slow
def test_the_environment_without_sources_and_without_network(
    excise: Any, stored: Any, prepared: Any, image: Path
) -> None:
    found = answers(
        excise, stored, image,
        "pwd; find . -name '*.py' | wc -l", "python -c 'import pytest; print(pytest.__version__)'",
        "wc -l < /proc/net/dev", "cat > /tests/x; cat /tests/x /logs/none", "ls /excise", stdin=b"given",
    )  # fmt: skip
    assert output(found[0]).split() == ["/testbed", "0"]
    assert output(found[1]).startswith("9.")
    assert int(output(found[2])) <= 3, "no network device but the loopback"
    assert (output(found[3]), found[3]["rc"]) == ("given", 1)
    assert "inside" not in output(found[4])


@pytest.mark.slow
def test_damaged_images_are_refused(excise: Any, stored: Any, image: Path, tmp_path: Path) -> None:
    done = excise("sandbox", tmp_path, "--cache", stored.cache, input="")
    assert (done.returncode, "holds no environment of an export" in done.stderr) == (USAGE, True)
    for path in image.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "project.tar.xz").write_bytes(b"damaged")
    done = excise("sandbox", tmp_path, "--cache", stored.cache, input="")
    assert done.returncode == FAILED
    assert "Traceback" not in done.stderr
