"""What this host's kernel offers, asked outside the jail by `doctor`. Prints JSON."""

import ctypes
import importlib.util
import json
import os

spec = importlib.util.spec_from_file_location("confine", os.path.join(os.path.dirname(__file__), "confine.py"))
confine = importlib.util.module_from_spec(spec)
spec.loader.exec_module(confine)

PR_GET_SECCOMP = 21


def has_libseccomp() -> bool:
    try:
        ctypes.CDLL("libseccomp.so.2")
    except OSError:
        return False
    return True


print(
    json.dumps(
        {
            "landlock": confine.landlock_version(),
            "seccomp": confine.LIBC.prctl(PR_GET_SECCOMP, 0, 0, 0, 0) >= 0,
            "libseccomp": has_libseccomp(),
        }
    )
)
