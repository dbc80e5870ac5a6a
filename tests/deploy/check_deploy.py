#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_deploy.py ROOT GDRX: files of deploy have the shape of their kind, and name only what is there."""
import json, pathlib, re, subprocess, sys

try:
    import jsonschema, yaml
except ImportError as missing:
    print(f"skipped: {missing} (python3-yaml, python3-jsonschema)")
    sys.exit(77)

try:
    import kubernetes_validate  # the API's own schemas, from PyPI
except ImportError:
    kubernetes_validate = None

root, gdrx = pathlib.Path(sys.argv[1]), sys.argv[2]
deploy = root / "deploy"
errors = []


def closed(required=(), **properties):
    """An object with these fields and no others: a misspelled field is an error, as for the API server."""
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def listing(items):
    return {"type": "array", "items": items, "minItems": 1}


TEXT, WHOLE, YES = {"type": "string"}, {"type": "integer", "minimum": 0}, {"type": "boolean"}
WORDS = listing(TEXT)
LABELS = {"type": "object", "additionalProperties": TEXT}  # "true" is text there, true is an error
QUANTITIES = {
    "type": "object",
    "propertyNames": {"pattern": r"^(cpu|memory|nvidia\.com/gpu|rdma/[a-z0-9_]+)$"},
    "additionalProperties": {"anyOf": [WHOLE, {"type": "string", "pattern": r"^\d+(m|[KMG]i)?$"}]},
}
PROBE = closed(("exec",), exec=closed(("command",), command=WORDS), initialDelaySeconds=WHOLE, periodSeconds=WHOLE,
               timeoutSeconds=WHOLE, failureThreshold={"type": "integer", "minimum": 1})
CONTAINER = closed(
    ("name", "image"), name={"type": "string", "pattern": "^[a-z0-9-]+$"}, image=TEXT, command=WORDS, args=WORDS,
    env=listing(closed(("name", "value"), name=TEXT, value=TEXT)), readinessProbe=PROBE,
    resources=closed(requests=QUANTITIES, limits=QUANTITIES),
    securityContext=closed(allowPrivilegeEscalation=YES, capabilities=closed(add=WORDS, drop=WORDS)),
    volumeMounts=listing(closed(("name", "mountPath"), name=TEXT, mountPath=TEXT, readOnly=YES)))
VOLUME = closed(("name",), name=TEXT, configMap=closed(("name",), name=TEXT),
                emptyDir=closed(medium={"enum": ["Memory", ""]}, sizeLimit=TEXT))
POD = closed(("containers",), containers=listing(CONTAINER), volumes=listing(VOLUME), runtimeClassName=TEXT,
             hostNetwork=YES, nodeSelector=LABELS, tolerations=listing(closed(operator={"enum": ["Exists", "Equal"]}, key=TEXT)))
META = closed(("name",), name=TEXT, labels=LABELS)
TEMPLATE = closed(("spec",), metadata=closed(labels=LABELS), spec=POD)
REPLICA = closed(("template",), replicas={"type": "integer", "minimum": 1}, template=TEMPLATE)


def kind(api, name, spec):
    return closed(("apiVersion", "kind", "metadata", "spec"), apiVersion={"const": api}, kind={"const": name},
                  metadata=META, spec=spec)


SHAPES = {
    "doctor-daemonset.yaml": kind("apps/v1", "DaemonSet", closed(
        ("selector", "template"), selector=closed(("matchLabels",), matchLabels=LABELS), template=TEMPLATE)),
    "mpijob.yaml": kind("kubeflow.org/v2beta1", "MPIJob", closed(
        ("mpiReplicaSpecs",), slotsPerWorker=WHOLE, runPolicy=closed(cleanPodPolicy={"enum": ["None", "Running", "All"]}),
        mpiReplicaSpecs=closed(("Launcher", "Worker"), Launcher=REPLICA, Worker=REPLICA))),
    "nic-cluster-policy.yaml": kind("mellanox.com/v1alpha1", "NicClusterPolicy", closed(
        rdmaSharedDevicePlugin=closed(("image", "repository", "version", "config"), image=TEXT, repository=TEXT,
                                      version=TEXT, config=TEXT))),
    "gpu-operator-values.yaml": closed(driver=closed(
        enabled=YES, kernelModuleType={"enum": ["auto", "open", "proprietary"]},
        rdma=closed(enabled=YES, useHostMofed=YES)), gdrcopy=closed(enabled=YES)),
}


def pods(node):
    """Every pod's spec in a document."""
    if isinstance(node, dict):
        if "containers" in node:
            yield node
        for value in node.values():
            yield from pods(value)


def published(name, document):
    """What the API server itself would say, where its schemas are installed: of the kinds and pods that it has."""
    if not kubernetes_validate or "kind" not in document:
        return 0
    version, checked = kubernetes_validate.latest_version(), 0
    whole = [{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": pod} for pod in pods(document)]
    for one in [document, *whole]:
        try:
            kubernetes_validate.validate(one, version, strict=True)
            checked += 1
        except kubernetes_validate.SchemaNotFoundError:
            pass  # an operator's own kind: its shape above, its pods here
        except kubernetes_validate.ValidationError as problem:
            errors.append(f"{name}: Kubernetes {version}: {'/'.join(map(str, problem.path))}: {problem.message}")
    return checked


def shell(name, text):
    done = subprocess.run(["sh", "-n", "-c", text], capture_output=True, text=True)
    if done.returncode:
        errors.append(f"{name}: no shell: {done.stderr.strip()}")


def check_yaml(path):
    document = yaml.safe_load(path.read_text())
    for problem in jsonschema.Draft7Validator(SHAPES[path.name]).iter_errors(document):
        errors.append(f"{path.name}: {'/'.join(map(str, problem.absolute_path))}: {problem.message}")
    judged[0] += published(path.name, document)
    for pod in pods(document):
        volumes = {volume["name"] for volume in pod.get("volumes", [])}
        for container in pod["containers"]:
            mounted = {mount["name"] for mount in container.get("volumeMounts", [])}
            if mounted != volumes:
                errors.append(f"{path.name}: mounts {mounted} of volumes {volumes}")
            if "privileged" in str(container):
                errors.append(f"{path.name}: privileged")
            if container.get("command", [])[:2] == ["/bin/sh", "-c"]:
                shell(path.name, container["args"][0])
    return document


judged = [0]
if kubernetes_validate:  # what accepts anything checks nothing
    before, wrong = len(errors), yaml.safe_load((deploy / "kubernetes/doctor-daemonset.yaml").read_text())
    wrong["spec"]["template"]["spec"]["containers"][0]["volumeMount"] = []
    published("a misspelled field", wrong)
    errors = errors[:before] if len(errors) > before else errors + ["Kubernetes' schemas accept a misspelled field"]
found = {path.name for path in (deploy / "kubernetes").glob("*.yaml")}
if found != set(SHAPES):
    errors.append(f"files without a shape, or shapes without a file: {found ^ set(SHAPES)}")
documents = {name: check_yaml(deploy / "kubernetes" / name) for name in sorted(found & set(SHAPES))}
daemons = documents["doctor-daemonset.yaml"]["spec"]
labels = daemons["template"]["metadata"]["labels"]
if not daemons["selector"]["matchLabels"].items() <= labels.items():
    errors.append("doctor-daemonset.yaml: the selector does not select its own pods")
policy = documents["nic-cluster-policy.yaml"]["spec"]["rdmaSharedDevicePlugin"]["config"]
resource = "rdma/" + json.loads(policy)["configList"][0]["resourceName"]
for name in ("doctor-daemonset.yaml", "mpijob.yaml"):
    if resource not in (deploy / "kubernetes" / name).read_text():
        errors.append(f"{name}: does not ask for {resource}, which the policy makes")

# Every option that a file gives to gdrx is one that gdrx has.
helps = {name: subprocess.run([gdrx, name, "--help"], capture_output=True, text=True).stdout for name in ("doctor", "topo")}
texts = {path: path.read_text() for path in deploy.rglob("*") if path.is_file()}
for path, text in texts.items():
    if "SPDX-License-Identifier" not in text and path.suffix not in (".md",):
        errors.append(f"{path.name}: no licence line")
    for command, rest in re.findall(r'gdrx"?,? "?(doctor|topo)"?([^|;&\n\]]*)', text):
        for option in re.findall(r"--[a-z-]+", rest):
            if option + " " not in helps[command] and option + "\n" not in helps[command]:
                errors.append(f"{path.name}: gdrx {command} has no {option}")

# The Dockerfile: known instructions, sources that exist, options that CMake knows.
docker = re.sub(r"\\\n", " ", (deploy / "docker/Dockerfile").read_text())
options = (root / "CMakeLists.txt").read_text() + "".join(p.read_text() for p in (root / "cmake").glob("*.cmake"))
for line in filter(None, (line.strip() for line in docker.splitlines() if not line.startswith("#"))):
    word, rest = line.split(None, 1)
    if word not in ("FROM", "WORKDIR", "COPY", "RUN", "CMD", "ENV"):
        errors.append(f"Dockerfile: {word}?")
    if word == "COPY" and "--from" not in rest and not (root / rest.split()[0]).exists():
        errors.append(f"Dockerfile: {rest.split()[0]} is not in the tree")
    if word == "RUN":
        shell("Dockerfile", rest)
    for option in re.findall(r"-D(GDRX_\w+)", rest):
        if option not in options:
            errors.append(f"Dockerfile: CMake knows no {option}")

by = f"{judged[0]} documents and pods by Kubernetes' own schemas" if kubernetes_validate else "Kubernetes' own schemas are not here"
print("\n".join(errors) or f"{len(texts)} files are well; {by}")
sys.exit(1 if errors else 0)
