"""Every external repository of this workspace, for WORKSPACE builds."""

load("@bazel_tools//tools/build_defs/repo:utils.bzl", "maybe")
load("//third_party/abseil:abseil.bzl", "system_abseil")
load("//third_party/protobuf:protobuf.bzl", "system_protobuf")
load(":debian_library.bzl", "debian_library")
load(":inline_repository.bzl", "inline_repository")
load(":system_libraries.bzl", "system_libraries")

def _native(rules):
    return "\n".join(["%s = native.%s" % (rule, rule) for rule in rules])

_BUILT_IN = """
load(":built_in.bzl", "built_in")
{0} = built_in.{0}
"""

def _bazel_dependencies():
    # Bazel 4 itself asks for these before it builds C++; BUILD files load Debian's copies.
    maybe(native.local_repository, name = "bazel_skylib", path = "/usr/share/bazel/tools/skylib")
    maybe(native.local_repository, name = "platforms", path = "/usr/share/bazel/tools/platforms")

    # Needed by newer Debian's platforms alone.
    maybe(native.local_repository, name = "rules_license", path = "/usr/share/bazel/rules/license")
    maybe(
        inline_repository,
        name = "rules_cc",
        files = {
            # Bazel 4 has these built in; they are at the places from which Bazel 9 asks to load them.
            "cc/BUILD.bazel": """
alias(
    name = "current_cc_toolchain",
    actual = "@bazel_tools//tools/cpp:current_cc_toolchain",
    visibility = ["//visibility:public"],
)
""",
            "cc/common/BUILD.bazel": "",
            "cc/common/built_in.bzl": "built_in = struct(CcInfo = CcInfo, cc_common = cc_common)",
            "cc/common/cc_common.bzl": _BUILT_IN.format("cc_common"),
            "cc/common/cc_info.bzl": _BUILT_IN.format("CcInfo"),
            "cc/find_cc_toolchain.bzl": """
load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")
find_cc_toolchain = find_cpp_toolchain
def use_cc_toolchain():
    return ["@bazel_tools//tools/cpp:toolchain_type"]
""",
            "cc/defs.bzl": _native([
                "cc_binary",
                "cc_import",
                "cc_library",
                "cc_proto_library",
                "cc_test",
                "cc_toolchain",
                "cc_toolchain_suite",
            ]),
        },
    )
    maybe(
        inline_repository,
        name = "rules_python",
        files = {
            "python/BUILD.bazel": "",
            "python/defs.bzl": _native(["py_binary", "py_library", "py_test"]),
        },
    )
    maybe(
        inline_repository,
        name = "rules_shell",
        files = {
            "shell/BUILD.bazel": "",
            "shell/sh_binary.bzl": _native(["sh_binary"]),
            "shell/sh_test.bzl": _native(["sh_test"]),
        },
    )
    maybe(
        inline_repository,
        name = "rules_java",
        files = {
            "java/BUILD.bazel": "",
            "java/defs.bzl": _native([
                "java_binary",
                "java_import",
                "java_library",
                "java_runtime",
                "java_toolchain",
            ]),
        },
    )
    maybe(
        inline_repository,
        name = "remote_coverage_tools",
        files = {"BUILD.bazel": "filegroup(name = 'coverage_report_generator', visibility = ['//visibility:public'])"},
    )

def ott_dependencies():
    """Declares what optim_test_tools needs; a repository of the same name declared before wins."""
    if native.existing_rule("com_google_absl") and not native.existing_rule("abseil-cpp"):
        fail("This WORKSPACE has an Abseil called com_google_absl, and optim_test_tools would bring another one, abseil-cpp. " +
             "Two in one program clash: declare yours as abseil-cpp as well, before ott_dependencies().")
    _bazel_dependencies()
    maybe(system_protobuf, name = "com_google_protobuf")
    maybe(system_abseil, name = "abseil-cpp")
    maybe(
        debian_library,
        name = "googletest",
        header = "gmock/gmock.h",
        package = "libgmock-dev",
        targets = {
            "gtest": ["-lgmock", "-lgtest", "-lpthread"],
            "gtest_main": ["-lgmock_main", "-lgmock", "-lgtest", "-lpthread"],
        },
    )
    maybe(
        debian_library,
        name = "google_benchmark",
        header = "benchmark/benchmark.h",
        package = "libbenchmark-dev",
        targets = {
            "benchmark": ["-lbenchmark", "-lpthread"],
            "benchmark_main": ["-lbenchmark_main", "-lbenchmark", "-lpthread"],
        },
    )
    maybe(
        debian_library,
        name = "boost.math",
        header = "boost/math/distributions/students_t.hpp",
        package = "libboost-dev",
        targets = {"boost.math": []},
    )
    maybe(
        debian_library,
        name = "cli11",
        header = "CLI/CLI.hpp",
        package = "libcli11-dev",
        targets = {"cli11": []},
    )
    maybe(
        debian_library,
        name = "nlohmann_json",
        header = "nlohmann/json.hpp",
        package = "nlohmann-json3-dev",
        targets = {"json": []},
    )
    maybe(
        debian_library,
        name = "xxhash",
        header = "xxhash.h",
        package = "libxxhash-dev",
        targets = {"xxhash": ["-lxxhash"]},
    )
    maybe(
        debian_library,
        name = "zlib",
        header = "zlib.h",
        package = "zlib1g-dev",
        targets = {"zlib": ["-lz"]},
    )
    maybe(
        debian_library,
        name = "re2",
        header = "re2/re2.h",
        package = "libre2-dev",
        targets = {"re2": ["-lre2"]},
    )
    maybe(
        debian_library,
        name = "simdjson",
        header = "simdjson.h",
        package = "libsimdjson-dev",
        targets = {"simdjson": ["-lsimdjson"]},
    )
    maybe(
        debian_library,
        name = "sqlite",
        header = "sqlite3.h",
        package = "libsqlite3-dev",
        targets = {"sqlite3": ["-lsqlite3"]},
    )
    maybe(
        debian_library,
        name = "libpng",
        header = "png.h",
        package = "libpng-dev",
        targets = {"png": ["-lpng"]},
    )
    system_libraries()
