#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sbom_test.py BUILD SOURCE: the SBOM of a build names what its library is linked with, and holds together.

spdx-tools (pyspdxtools, of PyPI) validates it where it is installed; PYSPDXTOOLS may name it."""
import json, os, pathlib, re, shutil, subprocess, sys, tempfile

build, source = map(pathlib.Path, sys.argv[1:3])
if not shutil.which("dpkg-query"):
    print("versions are those of Debian's packages, and there is no dpkg here")
    sys.exit(77)


def run(*words):
    return subprocess.run([str(word) for word in words], check=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True).stdout


with tempfile.TemporaryDirectory() as folder:
    run(source / "scripts/package", "sbom", "--build", build, "-o", folder)
    path, = pathlib.Path(folder).glob("gdrx-*.spdx.json")
    said = json.loads(path.read_text())
    packages = {one["name"]: one for one in said["packages"]}
    ids = {one["SPDXID"] for one in said["packages"] + said["files"]} | {"SPDXRef-DOCUMENT"}
    loose = [one for one in said["relationships"] if {one["spdxElementId"], one["relatedSpdxElement"]} - ids]
    assert not loose, f"relations of what is not there: {loose}"
    # Asked in another way than the script does: by the loader, and by the compiler's packages.
    ssl = next(name for name in packages if re.fullmatch("libssl3(t64)?", name))
    for name in (ssl, "libstdc++6", "libcli11-dev", "libexpected-dev"):
        version = run("dpkg-query", "-W", "-f", "${Version}", name)
        assert packages[name]["versionInfo"] == version, f"{name}: {packages[name]['versionInfo']}, and {version} is installed"
    assert "libgtest-dev" not in packages, "what only tests use is not in what is installed"
    built = next(one for one in said["files"] if re.search(r"/libgdrx\.so\.0\.", one["fileName"]))
    assert len(built["checksums"]) == 2 and all(re.fullmatch("[0-9a-f]{40,64}", one["checksumValue"]) for one in built["checksums"])
    tool = os.environ.get("PYSPDXTOOLS") or shutil.which("pyspdxtools")
    if tool:
        run(tool, "-i", path)
    print(f"{len(packages)} packages, {len(said['files'])} files" + ("" if tool else "; not validated: pyspdxtools is not installed"))
