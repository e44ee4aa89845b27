"""Says why the extension module cannot be imported."""

import sys


def explain(error: ImportError) -> str:
    """Returns a message that names the Python that the extension was built for, and this one, if they differ."""
    try:
        from optim_test_tools._built_for import PYTHON as built_for
    except ImportError:
        built_for = sys.implementation.cache_tag
    if built_for != sys.implementation.cache_tag:
        return (
            f"optim_test_tools was built for {built_for}, and {sys.executable} is {sys.implementation.cache_tag}: run the Python that it was "
            f"built for, or build it for this one, by Bazel with --repo_env=PYTHON_INTERPRETER={sys.executable} (docs/building.md)"
        )
    return f"{error}; a wheel by Bazel alone uses the shared libraries of the machine that it was built on (docs/python.md)"
