# SPDX-License-Identifier: Apache-2.0
"""What a build holds, as SPDX 2.3: its libraries and programs with their checksums, the packages of Debian that they link,
and those whose headers were compiled in. All of it is read from the build, nothing from a list that somebody keeps."""
import datetime
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import uuid

from packed import source

TOOL = "gdrx-scripts-package"


def output(*words, check=True, **more):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False, **more)
    if check and done.returncode:
        sys.exit(f"package: {words[0]} {words[1]} ends with {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def built(build):
    """Libraries and programs as they are installed."""
    stage = build / "install/sbom"
    output("cmake", "-E", "rm", "-rf", stage)
    output("cmake", "--install", build, "--prefix", stage)
    files = [path for path in sorted(stage.rglob("*")) if path.is_file() and not path.is_symlink()]
    return stage, [path for path in files if path.open("rb").read(4) == b"\x7fELF"]


def linked(files, lib):
    """Paths of the libraries that the loader takes for these files, and not ours."""
    found = set()
    for path in files:
        said = output("ldd", path, env={**os.environ, "LD_LIBRARY_PATH": str(lib)}, check=False)
        needed = set(re.findall(r"NEEDED.*\[(.+)\]", output("readelf", "-d", path)))
        for name, where in re.findall(r"^\s*(\S+) => (/\S+)", said, re.M):
            if name in needed and "gdrx" not in name:
                found.add(os.path.realpath(where))
    return found


def included(build):
    """Headers from outside that the compiler has read for what is installed."""
    headers, counted = set(), False
    for line in output("ninja", "-C", build, "-t", "deps").splitlines():
        if line.startswith("    "):
            headers |= {os.path.normpath(os.path.join(build, line.strip()))} if counted else set()
        else:
            counted = not line.startswith("tests/") and "precompiled_tests" not in line
    return {os.path.realpath(path) for path in headers if path.startswith("/usr/")}


def archives(build, files):
    """Static libraries from outside in what is installed."""
    names, found = {path.name for path in files}, set()
    for made, words in re.findall(r"^build (?:bin|lib)/(\S+): (.*)$", (build / "build.ninja").read_text(), re.M):
        if made in names:
            found |= {os.path.realpath(word) for word in words.split() if word.startswith("/") and word.endswith(".a")}
    return {path for path in found if not path.startswith(str(build))}


def owners(paths):
    """Debian's packages of these files."""
    owned, paths = set(), sorted(paths)
    for at in range(0, len(paths), 500):
        # /lib is /usr/lib on newer systems, and dpkg knows one of the names.
        asked = [name for path in paths[at:at + 500] for name in (path, path.removeprefix("/usr"))]
        for line in output("dpkg-query", "-S", *asked, check=False).splitlines():
            owned |= {name.strip() for name in line.rsplit(": ", 1)[0].split(",") if "diversion by" not in line}
    return sorted(owned)


def key_of(name):
    return "SPDXRef-Package-" + re.sub(r"[^A-Za-z0-9.-]", "-", name)


def relation(key, kind):
    return ({"spdxElementId": key, "relationshipType": kind, "relatedSpdxElement": "SPDXRef-gdrx"} if kind.endswith("_OF") else
            {"spdxElementId": "SPDXRef-gdrx", "relationshipType": kind, "relatedSpdxElement": key})


def stranger(name, version, **more):
    return {"SPDXID": key_of(name), "name": name, "versionInfo": version, "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
            "licenseConcluded": "NOASSERTION", "licenseDeclared": "NOASSERTION", "copyrightText": "NOASSERTION", **more}


def of_debian(name):
    form = "${Package}\t${Version}\t${Architecture}\t${source:Package}\t${Homepage}"
    short, version, arch, origin, home = output("dpkg-query", "-W", "-f", form, name).split("\t")
    more = {"homepage": home} if home.startswith("http") else {}
    return stranger(short, version, sourceInfo=f"Debian source package {origin}", **more, externalRefs=[
        {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": f"pkg:deb/debian/{short}@{version}?arch={arch}"}])


def of_toolkit(path, build):
    """A static library that no package of Debian has: of the CUDA toolkit, whose version CMake has asked for."""
    said = "".join(file.read_text() for file in build.glob("CMakeFiles/*/CMakeCUDACompiler.cmake"))
    version = re.search(r'CMAKE_CUDA_COMPILER_VERSION "([^"]+)"', said)
    return stranger(pathlib.Path(path).stem, version.group(1) if version and "cuda" in path else "NOASSERTION")


def dependencies(build, binaries):
    """Packages of others, and how gdrx is related to each."""
    static = archives(build, binaries)
    held = {path: owners({path}) for path in static}
    groups = [("DYNAMIC_LINK", [of_debian(name) for name in owners(linked(binaries, build / "lib"))]),
              ("STATIC_LINK", [of_toolkit(path, build) for path in sorted(static) if not held[path]]),
              ("BUILD_DEPENDENCY_OF", [of_debian(name) for name in owners(included(build))])]
    packages = {one["SPDXID"]: one for _, group in groups for one in group}
    return list(packages.values()), [relation(one["SPDXID"], kind) for kind, group in groups for one in group]


def described(stage, path, number):
    data = path.read_bytes()
    return {"SPDXID": f"SPDXRef-File-{number}", "fileName": f"./{path.relative_to(stage)}", "fileTypes": ["BINARY"],
            "checksums": [{"algorithm": kind, "checksumValue": hashlib.new(kind.lower(), data).hexdigest()} for kind in ("SHA1", "SHA256")],
            "licenseConcluded": "NOASSERTION", "licenseInfoInFiles": ["NOASSERTION"], "copyrightText": "NOASSERTION"}


def document(root, build):
    stage, binaries = built(build)
    files = [described(stage, path, number) for number, path in enumerate(binaries, 1)]
    version = source.version_of(root)
    sums = sorted(one["checksums"][0]["checksumValue"] for one in files)
    packages = [{
        "SPDXID": "SPDXRef-gdrx", "name": "gdrx", "versionInfo": version, "downloadLocation": "NOASSERTION", "filesAnalyzed": True,
        "packageVerificationCode": {"packageVerificationCodeValue": hashlib.sha1("".join(sums).encode()).hexdigest()},
        "licenseConcluded": "Apache-2.0", "licenseDeclared": "Apache-2.0", "licenseInfoFromFiles": ["NOASSERTION"],
        "copyrightText": "NOASSERTION", "primaryPackagePurpose": "LIBRARY"}]
    relations = [{"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": "SPDXRef-gdrx"}]
    relations += [{"spdxElementId": "SPDXRef-gdrx", "relationshipType": "CONTAINS", "relatedSpdxElement": one["SPDXID"]} for one in files]
    others, related = dependencies(build, binaries)
    packages += others
    relations += related
    made = datetime.datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", datetime.datetime.now().timestamp())), datetime.timezone.utc)
    identity = uuid.uuid5(uuid.NAMESPACE_URL, version + "".join(sums))
    return {"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"gdrx-{version}",
            "documentNamespace": f"urn:uuid:{identity}", "creationInfo": {"created": made.strftime("%Y-%m-%dT%H:%M:%SZ"), "creators": [f"Tool: {TOOL}"]},
            "packages": packages, "files": files, "relationships": relations}


def make(root, build, out):
    build = pathlib.Path(build) if build else root / "build/release"
    if not (build / "build.ninja").exists():
        sys.exit(f"package: {build} is no build of gdrx by Ninja: scripts/quickstart makes build/release, or name one by --build")
    said = document(root, build.resolve())
    out.mkdir(parents=True, exist_ok=True)
    path = out / f"gdrx-{source.version_of(root)}.spdx.json"
    path.write_text(json.dumps(said, indent=2) + "\n")
    print(f"{path}: {len(said['files'])} files, {len(said['packages']) - 1} packages of others")
