"""The page of deployment and the files of `deploy`: what can be tried without Docker, a cluster and systemd is tried.

The server starts as each of them starts it, with a small model, another port and keys of the test. What is not tried: the
images (`docker build`, `docker run`, compose as a whole), `kubectl` against a cluster, `systemctl`, Prometheus and Grafana.
"""

import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import pytest
from conftest import ROOT

yaml = pytest.importorskip("yaml", reason="PyYAML is not installed here")

PAGE = ROOT / "docs/deployment.md"
DEPLOY = ROOT / "deploy"
FILES = sorted(path for ending in ("*.yaml", "*.yml") for path in DEPLOY.rglob(ending))
KEY = "a-key-of-the-test"


def command(*words):
    """A command of the package, ended."""
    return subprocess.run([sys.executable, "-m", "yirage", *words], capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module")
def options():
    """What the command can be told: names of flags and of variables."""
    found = json.loads(command("config", "explain", "--json").stdout)["options"]
    return {"--" + one["name"] for one in found}, {one["variable"] for one in found if one["variable"]}


def documents(path):
    return [one for one in yaml.safe_load_all(path.read_text()) if one is not None]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(DEPLOY)))
def test_each_file_is_yaml_with_something_in_it(path):
    assert documents(path)


def texts():
    """Everything that names options: the page, the files of deployment, and the stage of the image."""
    unit = DEPLOY / "systemd/yirage.service"
    return {path: path.read_text() for path in [PAGE, DEPLOY / "README.md", ROOT / "Dockerfile", unit, *FILES]}


def test_every_option_that_is_named_is_one_of_the_command(options):
    flags, variables = options
    served = set(re.findall(r"--[a-z][a-z-]+", command("serve", "--help").stdout)) | flags
    # Those of docker and kubectl in lines and comments of theirs.
    theirs = {"--target", "--rm", "--read-only", "--tmpfs", "--build", "--from-file", "--now"}
    # Those of what the Dockerfile runs.
    theirs |= {"--yes", "--no-install-recommends", "--release", "--locked", "--package", "--no-default-features"}
    theirs |= {"--features", "--strip-debug", "--from", "--chown", "--no-cache-dir", "--no-deps", "--wheel-dir", "--create-home"}
    theirs |= {"--gpus", "--extract", "--target-directory"}
    # No option: which folder keeps what a device's compiler has made.
    variables = variables | {"YIRAGE_KERNEL_CACHE"}
    for path, text in texts().items():
        named = set(re.findall(r"\bYIRAGE_[A-Z_]+[A-Z]\b", text))
        assert named <= variables, f"{path}: {named - variables}"
        given = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text))
        assert given <= served | theirs, f"{path}: {given - served - theirs}"


def test_commands_that_the_page_names_are_there():
    named = set(re.findall(r"`yirage ([a-z-]+)", PAGE.read_text()))
    assert {"serve", "config", "inspect", "bench-serve"} <= named
    for name in named:
        assert command(name, "--help").returncode == 0, name


def lines():
    """The lines of the page for a shell, those that go on joined."""
    text = PAGE.read_text().replace("\\\n", " ")
    return [line.strip() for line in text.splitlines() if line.startswith("    ")]


def test_files_and_stages_that_the_page_names_are_there():
    for link in re.findall(r"\]\(([^)#]+)", PAGE.read_text()):
        assert (PAGE.parent / link).exists(), link
    for line in lines():
        for path in re.findall(r"(?<!/)\bdeploy/[\w./-]+", line):
            assert (ROOT / path).exists(), line
    stages = re.findall(r"^FROM \S+ AS (\S+)", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert [line for line in lines() if line.startswith("docker build") and line.split("--target ")[1].split()[0] in stages]
    compose = documents(DEPLOY / "compose.yaml")[0]["services"]["yirage"]
    on_cuda = documents(DEPLOY / "compose.cuda.yaml")[0]["services"]["yirage"]
    assert on_cuda["build"]["target"] in stages and on_cuda["image"] != compose["image"]
    assert compose["build"]["target"] in stages and (DEPLOY / compose["build"]["context"] / "Dockerfile").is_file()
    for volume in [one for service in documents(DEPLOY / "compose.yaml")[0]["services"].values() for one in service["volumes"]]:
        source = volume.split(":")[0]
        assert not source.startswith(".") or (DEPLOY / source).is_dir(), volume


def test_the_manifests_fit_each_other():
    (kustomization,) = documents(DEPLOY / "kubernetes/kustomization.yaml")
    found = [one for name in kustomization["resources"] for one in documents(DEPLOY / "kubernetes" / name)]
    kinds = {one["kind"]: one for one in found}
    pod = kinds["Deployment"]["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    labels = pod["metadata"]["labels"].items()
    assert kinds["Deployment"]["spec"]["selector"]["matchLabels"].items() <= labels
    assert kinds["Service"]["spec"]["selector"].items() <= labels
    assert kinds["Service"]["spec"]["ports"][0]["targetPort"] in {port["name"] for port in container["ports"]}
    assert kinds["HorizontalPodAutoscaler"]["spec"]["scaleTargetRef"]["name"] == kinds["Deployment"]["metadata"]["name"]
    assert {mount["name"] for mount in container["volumeMounts"]} == {one["name"] for one in pod["spec"]["volumes"]}
    claims = [one["persistentVolumeClaim"]["claimName"] for one in pod["spec"]["volumes"] if "persistentVolumeClaim" in one]
    assert claims == [kinds["PersistentVolumeClaim"]["metadata"]["name"]]
    assert kustomization["images"][0]["name"] == container["image"]
    # The secret that the page makes.
    secrets = [one["secret"]["secretName"] for one in pod["spec"]["volumes"] if "secret" in one]
    assert [line for line in lines() if line.startswith(f"kubectl create secret generic {secrets[0]} --from-file=keys")]


def entry_point():
    """What the stage `server` of the image starts, but for the program."""
    stage = (ROOT / "Dockerfile").read_text().split(" AS server\n")[1].split("\nFROM ")[0]
    program, *arguments = json.loads(re.search(r"^ENTRYPOINT (.*)$", stage, re.MULTILINE)[1])
    assert program.endswith("/yirage")
    return arguments


def by_docker():
    """The line of the page that starts a container."""
    (line,) = [line for line in lines() if line.startswith("docker run ")]
    words = shlex.split(line)
    given = [words[at + 1] for at, word in enumerate(words) if word == "-e"]
    image = words.index("yirage-server")
    return [*entry_point(), *words[image + 1 :]], dict(one.split("=", 1) for one in given)


def by_compose():
    service = documents(DEPLOY / "compose.yaml")[0]["services"]["yirage"]
    environment = {name: value for name, value in service["environment"].items() if value is not None}
    return [*entry_point(), *service["command"]], environment


def by_kubernetes():
    (deployment,) = documents(DEPLOY / "kubernetes/deployment.yaml")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    return [*entry_point(), *container["args"]], {one["name"]: one["value"] for one in container["env"]}


def by_systemd():
    unit = (DEPLOY / "systemd/yirage.service").read_text()
    (line,) = re.findall(r"^ExecStart=/usr/local/bin/yirage (.*)$", unit, re.MULTILINE)
    given = " ".join(re.findall(r"^Environment=(.*)$", unit, re.MULTILINE)).split()
    return line.split(), dict(one.split("=", 1) for one in given)


WAYS = {"docker": by_docker, "compose": by_compose, "kubernetes": by_kubernetes, "systemd": by_systemd}


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def asked(port, path, key=None):
    """The status and the body of an answer; 0 where nothing listens."""
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except OSError:
        return 0, ""


def probes():
    """Paths that the manifest asks."""
    (deployment,) = documents(DEPLOY / "kubernetes/deployment.yaml")
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    return {container[name]["httpGet"]["path"] for name in ("startupProbe", "readinessProbe", "livenessProbe")}


@pytest.mark.parametrize("way", WAYS)
def test_the_server_starts_answers_and_ends_as_it_is_deployed(way, tmp_path, bedtime):
    """Its arguments and variables are those of the file; the model, the port and places are the test's."""
    arguments, given = WAYS[way]()
    assert given["YIRAGE_API_KEY_FILE"], "a server that others reach has keys"
    (tmp_path / "keys").write_text(f"someone {KEY}\n")
    own = {"YIRAGE_API_KEY_FILE": str(tmp_path / "keys"), "YIRAGE_PORT": str(port := free_port())}
    own |= {name: str(tmp_path) for name in ("HF_HOME", "HOME", "XDG_CONFIG_HOME")}
    arguments = [str(bedtime) if re.match(r"hf:|\$\{MODEL", word) else word for word in arguments]
    assert str(bedtime) in arguments
    kept = {name: value for name, value in os.environ.items() if not name.startswith("YIRAGE_")}
    server = subprocess.Popen(
        [sys.executable, "-m", "yirage", *arguments],
        env=kept | given | own,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        deadline = time.monotonic() + 120
        while asked(port, "/health/ready")[0] != 200:
            assert server.poll() is None and time.monotonic() < deadline, server.stderr.read()
            time.sleep(0.1)
        assert {path: asked(port, path)[0] for path in probes()} == dict.fromkeys(probes(), 200)
        assert asked(port, "/v1/models")[0] == 401
        status, models = asked(port, "/v1/models", KEY)
        assert status == 200
        if "--served-model-name" in arguments:
            assert arguments[arguments.index("--served-model-name") + 1] in models
        status, figures = asked(port, "/metrics", KEY)
        assert status == 200 and "vllm:request_queue_time_seconds" in figures
        server.send_signal(signal.SIGTERM)
        assert server.wait(120) == 0, server.stderr.read()
    finally:
        server.kill()
        server.wait()
        server.stderr.close()
