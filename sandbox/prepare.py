"""Describes the Python runtime for the launcher. Run once by set-up, outside the jail.

Writes, beside the virtual environment it runs in:
  manifest.json          interpreter, standard library, shared libraries, packages with versions
  matplotlib/            the font list, so that no run has to search for fonts
"""

import importlib.metadata
import json
import os
import pathlib
import platform
import re
import subprocess
import sys
import sysconfig

RUNTIME = pathlib.Path(sys.prefix).resolve().parent
PACKAGES = pathlib.Path(sysconfig.get_path("purelib")).resolve()
STANDARD_LIBRARY = pathlib.Path(sysconfig.get_path("stdlib")).resolve()

# Loaded by name at run time, so no file that is scanned below mentions them.
LOADED_BY_NAME = ["libseccomp.so.2", "libgcc_s.so.1"]

# glibc reads C.UTF-8 from here; distributions spell it differently.
LOCALE_FOLDERS = ["/usr/lib/locale/C.utf8", "/usr/lib/locale/C.UTF-8"]


def shared_libraries() -> list[str]:
    """Every shared library outside the runtime itself that the interpreter or a package links to."""
    interpreter = os.path.realpath(sys._base_executable)
    binaries = [interpreter]
    for folder in (STANDARD_LIBRARY / "lib-dynload", PACKAGES):
        binaries += [str(path) for path in sorted(folder.rglob("*.so*")) if path.is_file()]
    found: set[str] = set()
    for start in range(0, len(binaries), 100):
        # ldd exits with 1 when a single file of many has no dependencies; its lines are what counts.
        listing = subprocess.run(["ldd", *binaries[start : start + 100]], capture_output=True, text=True)
        found.update(re.findall(r"(?:=> |^\s+)(/\S.*?) \(0x", listing.stdout, re.MULTILINE))
    known = {os.path.basename(path) for path in found}
    found.update(loaded_library(name) for name in LOADED_BY_NAME if name not in known)
    inside = (f"{PACKAGES}/", f"{STANDARD_LIBRARY}/")
    return sorted(path for path in found if not os.path.realpath(path).startswith(inside))


def loaded_library(name: str) -> str:
    """The path from which the dynamic loader takes `name`."""
    import ctypes

    ctypes.CDLL(name)
    stem = name.split(".so")[0]
    for line in pathlib.Path("/proc/self/maps").read_text().splitlines():
        path = line[73:]
        if os.path.basename(path).startswith(f"{stem}.so"):
            return os.path.join(os.path.dirname(path), name)
    raise SystemExit(f"{name} was loaded, but its path is unknown")


def write_font_list(folder: pathlib.Path) -> None:
    """Matplotlib's font list, of the fonts it brings along alone: pictures look the same on every host."""
    folder.mkdir(exist_ok=True)
    for stale in folder.glob("fontlist-*.json"):
        stale.unlink()
    os.environ["MPLCONFIGDIR"] = str(folder)
    import matplotlib.font_manager as font_manager

    find_fonts = font_manager.findSystemFonts
    font_manager.findSystemFonts = lambda fontpaths=None, fontext="ttf": (
        find_fonts(fontpaths, fontext) if fontpaths else []
    )
    manager = font_manager.FontManager()
    for stale in folder.iterdir():
        stale.unlink()
    font_manager.json_dump(manager, folder / f"fontlist-v{font_manager.FontManager.__version__}.json")


def main() -> None:
    write_font_list(RUNTIME / "matplotlib")
    manifest = {
        "python": {
            "version": platform.python_version(),
            "executable": os.path.realpath(sys._base_executable),
            "standardLibrary": str(STANDARD_LIBRARY),
        },
        "packagesFolder": str(PACKAGES.relative_to(RUNTIME)),
        "sharedLibraries": shared_libraries(),
        "localeFolders": [folder for folder in LOCALE_FOLDERS if os.path.isdir(folder)],
        "packages": sorted(
            (
                {"name": each.metadata["Name"], "version": each.version}
                for each in importlib.metadata.distributions(path=[str(PACKAGES)])
                if each.metadata["Name"] not in ("pip", "setuptools")
            ),
            key=lambda each: each["name"].lower(),
        ),
    }
    target = RUNTIME / "manifest.json"
    aside = target.with_suffix(".new")
    aside.write_text(json.dumps(manifest, indent=2) + "\n")
    aside.replace(target)


if __name__ == "__main__":
    main()
