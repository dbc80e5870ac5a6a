# SPDX-License-Identifier: Apache-2.0
"""Debian packages, by CPack: cmake/GdrxPackages.cmake says what is in which."""
import pathlib
import shutil
import subprocess
import sys


def run(words, log):
    with log.open("a") as out:
        done = subprocess.run([str(word) for word in words], stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, check=False)
    if done.returncode:
        print(*log.read_text().splitlines()[-20:], sep="\n", file=sys.stderr)
        sys.exit(f"package: {words[0]} {words[1]} ends with {done.returncode}; all that it says is in {log}")


def compile_for_usr(root, build, log):
    """A build whose libraries lie where Debian has them: /usr/lib/TRIPLET. ccache has most of it from another build."""
    run(["cmake", "-S", root, "-B", build, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_INSTALL_PREFIX=/usr", "-DGDRX_WERROR=OFF",
         "-DGDRX_BUILD_TESTS=OFF", "-Wno-dev"], log)
    run(["cmake", "--build", build], log)


def make(root, build, out):
    """The packages of a build in `out`; of build/deb, which is compiled here, where no build is named."""
    for tool in "cpack", "dpkg-shlibdeps", "gzip", "file":
        if not shutil.which(tool):
            sys.exit(f"package: {tool} is not installed: let an administrator install cmake, dpkg-dev, gzip and file")
    here = pathlib.Path(build) if build else root / "build/deb"
    here.mkdir(parents=True, exist_ok=True)
    log = here / "package.log"
    log.unlink(missing_ok=True)
    if not build:
        compile_for_usr(root, here, log)
    if not (here / "CPackConfig.cmake").exists():
        sys.exit(f"package: {here} is no build of gdrx: leave --build out, or name one")
    work = here / "packages"
    shutil.rmtree(work, ignore_errors=True)
    run(["cpack", "--config", here / "CPackConfig.cmake", "-B", work], log)
    out.mkdir(parents=True, exist_ok=True)
    for made in sorted(work.glob("*.deb")):
        shutil.copy(made, out)
        print(f"{out / made.name}: {made.stat().st_size / 1e6:.2f} MB")
    shutil.rmtree(work)
