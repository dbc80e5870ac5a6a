# SPDX-License-Identifier: Apache-2.0
"""Where libgdrx and its header are."""
import os
import pathlib

NAME = "libgdrx.so.0"
HERE = pathlib.Path(__file__).resolve().parent


def _places():
    """Folders that may hold the library: TORCH_GDRX_LIBRARY alone if it is set."""
    named = os.environ.get("TORCH_GDRX_LIBRARY")
    if named:
        return [pathlib.Path(named)]
    places = [HERE / "lib"]
    places += [pathlib.Path(part) for part in os.environ.get("LD_LIBRARY_PATH", "").split(":") if part]
    return places + [pathlib.Path("/usr/local/lib"), pathlib.Path("/usr/lib")]


def path() -> pathlib.Path:
    """The library's file. Raises OSError with the places that were looked at."""
    for place in _places():
        if (place / NAME).exists():
            return place / NAME
    looked = ", ".join(str(place) for place in _places())
    raise OSError(f"gdrx: no {NAME} in {looked}: build gdrx and set TORCH_GDRX_LIBRARY to its lib folder")


def include() -> pathlib.Path:
    """The folder with gdrx/gdrx.h, for the shim that is compiled here."""
    return HERE / "include"
