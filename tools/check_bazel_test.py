#!/usr/bin/env python3
"""check_bazel_test.py CHECK_BAZEL: what Bazel 9 does not take is found in trees that the test makes."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

CHECK_BAZEL = sys.argv.pop(1)

MODULE = """
module(name = "mine")
bazel_dep(name = "rules_cc", version = "0.2.16")
bazel_dep(name = "googletest", version = "1.17.0.bcr.2", dev_dependency = True)
"""
LOADED = 'load("@rules_cc//cc:defs.bzl", "cc_library")\n'


class CheckBazelTest(unittest.TestCase):
    def check(self, needed="", module=MODULE, **files):
        """Returns exit code and messages for a repository of these files, whose face needs the labels `needed`."""
        root = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(shutil.rmtree, root)
        texts = {"MODULE.bazel": module, "tests/consumer/MODULE.bazel": 'module(name = "consumer")', **files}
        texts["bin/bazel"] = f"#!/bin/sh\necho '{needed}'\n"
        for path, text in texts.items():
            path = os.path.join(root, path)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
        os.chmod(f"{root}/bin/bazel", 0o755)
        os.mkdir(f"{root}/tools")
        shutil.copy(CHECK_BAZEL, f"{root}/tools/check_bazel")
        subprocess.run(["git", "init", "-q"], cwd=root, check=True)
        ran = subprocess.run([f"{root}/tools/check_bazel"], env={**os.environ, "PATH": f"{root}/bin:{os.environ['PATH']}"},
                             capture_output=True, text=True, check=False)
        return ran.returncode, ran.stdout + ran.stderr

    def expect_problem(self, problem, source, **files):
        code, output = self.check(**files)
        self.assertEqual(code, 1, output)
        self.assertRegex(output, rf"{problem}\n    by .*{source}")
        self.assertEqual(output.count("    by "), 1, output)

    def test_what_is_loaded_and_declared_passes(self):
        code, output = self.check(BUILD=LOADED + 'cc_library(name = "a", deps = ["@rules_cc//x", "//b", "@mine//c"])')
        self.assertEqual((code, output), (0, "check_bazel: 1 files, nothing that Bazel 9 is known not to take\n"))

    def test_a_rule_that_is_not_loaded(self):
        for rule in "cc_library", "py_test", "sh_binary", "cc_proto_library", "proto_lang_toolchain":
            self.expect_problem(f"b/BUILD:2: uses {rule}, which is not loaded", "27593", **{"b/BUILD": f'\n{rule}(name = "a")'})

    def test_a_rule_of_native(self):
        self.expect_problem("a.bzl:2: uses native.cc_test", "27593", **{"a.bzl": 'def f():\n    native.cc_test(name = "a")'})

    def test_a_provider_that_is_not_loaded(self):
        self.expect_problem("a.bzl:1: uses CcInfo, which is not loaded", "cc_info.bzl", **{"a.bzl": "x = [CcInfo]"})

    def test_the_toolchain_of_bazel_tools(self):
        self.expect_problem("a.bzl:1: loads @bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cc_toolchain",
                            **{"a.bzl": 'load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")'})
        self.expect_problem("a.bzl:1: names @bazel_tools//tools/cpp:current_cc_toolchain", "find_cc_toolchain",
                            **{"a.bzl": 'x = "@bazel_tools//tools/cpp:current_cc_toolchain"'})

    def test_a_setting_without_visibility(self):
        self.expect_problem("BUILD:1: config_setting without visibility", "incompatible_enforce_config_setting_visibility",
                            BUILD='config_setting(name = "a")')
        self.expect_problem("a.bzl:2: config_setting without visibility", "incompatible_enforce_config_setting_visibility",
                            **{"a.bzl": 'def f():\n    native.config_setting(name = "a")'})

    def test_a_module_that_is_not_declared(self):
        self.expect_problem("BUILD:2: names @zlib, which MODULE.bazel does not have", "use_repo",
                            BUILD=LOADED + 'cc_library(name = "a", deps = ["@zlib//:zlib"])')

    def test_a_dev_dependency_that_dependents_need(self):
        self.expect_problem("BUILD:1: loads from @googletest, a dev dependency", "dev dependencies", BUILD='load("@googletest//:a.bzl", "a")')
        self.expect_problem("MODULE.bazel:1: @googletest is a dev dependency, and //:all needs it", "dev dependencies",
                            needed="@googletest//:gtest")

    def test_a_version_that_is_too_old(self):
        self.expect_problem("MODULE.bazel:1: rules_cc 0.2.13 is older than 0.2.14 .*", "bazel-central-registry",
                            module=MODULE.replace("0.2.16", "0.2.13"))

    def test_the_consumer_sees_what_it_declares_itself(self):
        self.expect_problem("tests/consumer/BUILD:1: names @rules_cc, which MODULE.bazel does not have", "use_repo",
                            **{"tests/consumer/BUILD": LOADED})


if __name__ == "__main__":
    unittest.main()
