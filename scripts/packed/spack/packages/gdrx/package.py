# SPDX-License-Identifier: Apache-2.0
"""gdrx for Spack: builds the checkout in which this recipe lies. docs/how-to/install.md says how."""
import pathlib

from spack.package import *


class Gdrx(CMakePackage, CudaPackage):
    """Collective communication between the processes of a parallel program, in host memory and between GPUs."""

    git = pathlib.Path(__file__).resolve().parents[5].as_uri()
    license("Apache-2.0")
    version("main", branch="main")

    variant("mpi", default=True, description="gdrx under MPI, its objects for MPI programs, allreduce_test")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("python@3.9:", type="build")  # man pages and completion
    depends_on("fmt@9:")
    depends_on("tl-expected@1.0.0:", type="build")
    depends_on("nlohmann-json", type="build")
    depends_on("cli11", type="build")
    depends_on("openssl@3:")
    depends_on("libarchive@3.6:")
    depends_on("zlib-api")
    depends_on("pugixml@1.11:")
    depends_on("hwloc@2.5:")
    depends_on("ucx")
    depends_on("rdma-core")
    depends_on("mpi", when="+mpi")

    conflicts("%gcc@:11", msg="gdrx was built with GCC 12 and later alone")

    generator("ninja")

    def cmake_args(self):
        args = [
            self.define_from_variant("GDRX_CUDA", "cuda"),
            self.define("GDRX_BUILD_TESTS", False),
            self.define("GDRX_WERROR", False),
            self.define("CMAKE_DISABLE_FIND_PACKAGE_MPI", not self.spec.satisfies("+mpi")),
        ]
        if self.spec.satisfies("+cuda") and "none" not in self.spec.variants["cuda_arch"].value:
            args.append(self.define("CMAKE_CUDA_ARCHITECTURES", self.spec.variants["cuda_arch"].value))
        return args
