"""Grades a submission against tests and prints the verdict as one line of JSON.

`inputs` has `submission` (Python source), `function` (the name it must define), `tests` (a list of `{name, arguments,
expected}`) and `seconds_per_test`. A test that fails, raises or takes too long does not keep the others from
running, and what the submission prints stays out of the verdict.

The submission runs in this very process, so one that cheats could look at the expected values or print a verdict of
its own. Where marks depend on it, leave `expected` out, let this print what the function returned, and compare
outside. A run without a verdict counts as failed: the submission has ended the process, or used it up.
"""

import contextlib
import copy
import io
import json
import math
import reprlib
import signal


class TookTooLong(BaseException):
    """Not an Exception, so that a submission's `except Exception` does not catch it."""


@contextlib.contextmanager
def time_limit(seconds: float):
    def stop(signal_number, frame):
        raise TookTooLong

    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def guarded(action, seconds: float) -> tuple[object, str | None]:
    """What `action` returned, and what went wrong instead, in words for the student."""
    try:
        with time_limit(seconds), contextlib.redirect_stdout(io.StringIO()):
            return action(), None
    except TookTooLong:
        return None, f"took longer than {seconds} s"
    except SystemExit:
        return None, "called sys.exit"
    except Exception as error:
        return None, f"raised {type(error).__name__}: {error}"


def equal(actual: object, expected: object) -> bool:
    """As `==`, but 1 is not True, floats may differ by rounding, and a tuple is as good as a list."""
    if {type(actual), type(expected)} in ({float}, {int, float}):
        return math.isclose(actual, expected, rel_tol=1e-9, abs_tol=1e-12)
    if isinstance(actual, (list, tuple)) and isinstance(expected, list):
        return len(actual) == len(expected) and all(map(equal, actual, expected))
    return type(actual) is type(expected) and actual == expected


def grade_test(function, test: dict, seconds: float) -> dict:
    # A copy: a function that changes its arguments must not change the test.
    arguments = copy.deepcopy(test["arguments"])
    actual, complaint = guarded(lambda: function(*arguments), seconds)
    if complaint is None and not equal(actual, test["expected"]):
        # reprlib keeps it short, and a failing __repr__ of the submission's from ending the harness.
        complaint = f"returned {reprlib.repr(actual)} instead of {reprlib.repr(test['expected'])}"
    return {"name": test["name"], "passed": complaint is None, "complaint": complaint}


def grade(submission: str, function: str, tests: list[dict], seconds_per_test: float) -> dict:
    namespace = {"__name__": "submission"}

    def load():
        exec(compile(submission, "submission.py", "exec"), namespace)
        if not callable(namespace.get(function)):
            raise NameError(f"there is no function {function}")

    _, complaint = guarded(load, seconds_per_test)
    results = []
    if complaint is None:
        results = [grade_test(namespace[function], test, seconds_per_test) for test in tests]
    passed = sum(result["passed"] for result in results)
    return {"passed": passed, "of": len(tests), "complaint": complaint, "tests": results}


print(json.dumps(grade(**inputs)))
