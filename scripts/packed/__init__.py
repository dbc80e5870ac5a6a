# SPDX-License-Identifier: Apache-2.0
"""The parts of scripts/package that are no wheel: Debian packages, the source tarball, the list of what is in a build."""
