#!/usr/bin/env python3
"""Runs the search of system_library.bzl, which is Python as well, in folders that the test makes.

system_library_test.py system_library.bzl
"""

import os
import shutil
import subprocess
import sys
import tempfile
import types
import unittest

RULE = sys.argv.pop(1)
LIBRARY = "libfake.so"


class Path:
    def __init__(self, path):
        self.path = os.path.normpath(path)

    def __str__(self):
        return self.path

    exists = property(lambda self: os.path.exists(self.path))
    dirname = property(lambda self: Path(os.path.dirname(self.path)))

    def get_child(self, name):
        return Path(f"{self.path}/{name}")


class Context:
    """As much of Bazel's repository_ctx as the rule uses."""

    path = staticmethod(Path)

    def __init__(self, environ, attributes):
        self.os = types.SimpleNamespace(environ={"PATH": os.environ["PATH"], **environ})
        self.attr = types.SimpleNamespace(**attributes)
        self.links = {}
        self.files = {}

    def execute(self, command):
        answer = subprocess.run(command, env=self.os.environ, capture_output=True, text=True, check=False)
        return types.SimpleNamespace(return_code=answer.returncode, stdout=answer.stdout)

    def which(self, program):
        found = shutil.which(program, path=self.os.environ["PATH"])
        return found and Path(found)

    def symlink(self, target, name):
        self.links[name] = str(target)

    def file(self, name, text, executable=False):
        self.files[name] = text


def implementation():
    any_attribute = types.SimpleNamespace(**{name: lambda **_: None for name in ("bool", "label", "string", "string_list")})
    names = {"attr": any_attribute, "repository_rule": lambda implementation, **_: implementation, "struct": types.SimpleNamespace}
    with open(RULE, encoding="utf-8") as file:
        exec(compile(file.read(), RULE, "exec"), names)
    return names["system_library"]


class SystemLibraryTest(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir)

    def install(self, prefix, libraries="lib", headers="include"):
        """Installs the library below the test's folder, and returns its prefix."""
        prefix = f"{self.dir}/{prefix}"
        for folder, name in ((headers, "fake.h"), (libraries, LIBRARY), ("bin", "fakecc")):
            os.makedirs(f"{prefix}/{folder}", exist_ok=True)
            with open(f"{prefix}/{folder}/{name}", "w", encoding="utf-8"):
                pass
        os.chmod(f"{prefix}/bin/fakecc", 0o755)
        return prefix

    def find(self, environ, linked=(LIBRARY,), **attributes):
        """Returns the folders of headers and of the library, and the compiler; None if it is not found."""
        defaults = {
            "build_file": "BUILD", "cached": [], "compiler": "fakecc", "header": "fake.h", "homes": ["FAKE_HOME"], "library": LIBRARY,
            "more_folders": [], "more_libraries": ["libmore.so"], "pkg_config": ["fake"], "prefixes": [f"{self.dir}/default"],
            "single_header": False,
        }  # fmt: skip
        context = Context(environ, {**defaults, **attributes})
        implementation()(context)
        found = {}
        exec(context.files["found.bzl"], found)
        if not found["FOUND"]:
            self.assertEqual(found["LINKOPTS"], [])
            return None
        folder = found["LINKOPTS"][0]
        self.assertEqual(found["LINKOPTS"], [folder, "-Wl,-rpath," + folder[2:], *("-l:" + library for library in linked)])
        compiler = context.files["fakecc.sh"].split()[2]
        return context.links["include"], os.path.normpath(folder[2:]), os.path.normpath(compiler)

    def folders(self, prefix, libraries="lib"):
        return f"{prefix}/include", f"{prefix}/{libraries}", f"{prefix}/bin/fakecc"

    def test_a_home_is_the_only_place(self):
        home = self.install("home", "lib64")
        self.install("default")
        self.assertEqual(self.find({"FAKE_HOME": home}), self.folders(home, "lib64"))
        self.assertIsNone(self.find({"FAKE_HOME": "/none", "CPATH": f"{home}/include", "LIBRARY_PATH": f"{home}/lib64"}))

    def test_nothing_is_found_where_nothing_is(self):
        self.assertIsNone(self.find({}))

    def test_headers_without_their_library_are_not_joined_with_one_elsewhere(self):
        prefix = self.install("conda")
        os.remove(f"{prefix}/lib/{LIBRARY}")
        default = self.install("default")
        self.assertEqual(self.find({"CONDA_PREFIX": prefix}), self.folders(default))

    def test_conda_and_spack_come_before_the_defaults(self):
        self.install("default")
        conda, spack = self.install("conda"), self.install("spack", "lib64")
        self.assertEqual(self.find({"CONDA_PREFIX": conda}), self.folders(conda))
        self.assertEqual(self.find({"CMAKE_PREFIX_PATH": f"/none:{spack}"}), self.folders(spack, "lib64"))

    def test_the_folder_of_another_architecture(self):
        default = self.install("default", "lib/aarch64-linux-gnu")
        with open(f"{default}/bin/uname", "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\necho aarch64\n")
        os.chmod(f"{default}/bin/uname", 0o755)
        environ = {"PATH": f"{default}/bin:{os.environ['PATH']}"}
        self.assertEqual(self.find(environ), self.folders(default, "lib/aarch64-linux-gnu"))
        prefix = self.install("usr/aarch64-linux-gnu/fake")
        self.assertEqual(self.find(environ, prefixes=[f"{self.dir}/usr/{{multiarch}}/fake"]), self.folders(prefix))

    def test_a_library_in_two_parts(self):
        prefix = self.install("default")
        shutil.copy(f"{prefix}/lib/{LIBRARY}", f"{prefix}/lib/libmore.so")
        self.assertEqual(self.find({}, linked=(LIBRARY, "libmore.so")), self.folders(prefix))

    def test_pkg_config_says_where_folders_of_any_name_are(self):
        prefix = self.install("cluster", "libraries", "headers/fake-3")
        self.install("default")
        with open(f"{prefix}/fake.pc", "w", encoding="utf-8") as file:
            file.write(f"includedir={prefix}/headers/fake-3\nlibdir={prefix}/libraries\nName: fake\nDescription: fake\nVersion: 3\n")
        self.assertEqual(
            self.find({"PKG_CONFIG_PATH": prefix}), (f"{prefix}/headers/fake-3", f"{prefix}/libraries", f"{prefix}/bin/fakecc")
        )

    def test_last_the_compiler_is_asked(self):
        prefix = self.install("module")
        environ = {"CPATH": f"{prefix}/include", "LIBRARY_PATH": f"{prefix}/lib"}
        path = f"{prefix}/bin:{os.environ['PATH']}"
        self.assertEqual(self.find({**environ, "PATH": path}), self.folders(prefix))
        self.assertIsNone(self.find({"CPATH": environ["CPATH"]}))
        self.assertIsNone(self.find({"LIBRARY_PATH": environ["LIBRARY_PATH"]}))
        default = self.install("default")
        self.assertEqual(self.find({**environ, "PATH": path}), self.folders(default))


if __name__ == "__main__":
    unittest.main()
