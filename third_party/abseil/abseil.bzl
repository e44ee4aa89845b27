"""Debian's libabsl-dev under the labels of the abseil-cpp module."""

load("//third_party:debian_library.bzl", "debian_build_file", "debian_cc_library")

# Package -> target -> pkg-config module.  A target named here has the same label in the Bazel Central Registry.
_TARGETS = {
    "absl/base": {
        "config": "absl_config",
        "core_headers": "absl_core_headers",
    },
    "absl/cleanup": {"cleanup": "absl_cleanup"},
    "absl/container": {
        "flat_hash_map": "absl_flat_hash_map",
        "flat_hash_set": "absl_flat_hash_set",
        "inlined_vector": "absl_inlined_vector",
    },
    "absl/functional": {"function_ref": "absl_function_ref"},
    "absl/status": {
        "status": "absl_status",
        "statusor": "absl_statusor",
    },
    "absl/strings": {
        "str_format": "absl_str_format",
        "strings": "absl_strings",
    },
    "absl/time": {"time": "absl_time"},
    "absl/types": {"span": "absl_span"},
}

def _system_abseil_impl(ctx):
    for package, targets in _TARGETS.items():
        libraries = []
        for name, module in targets.items():
            result = ctx.execute(["pkg-config", "--libs", module])
            linkopts = [flag for flag in result.stdout.strip().split(" ") if flag]
            libraries.append(debian_cc_library(name, "libabsl-dev", linkopts, result.return_code == 0))
        ctx.file(package + "/BUILD.bazel", debian_build_file(libraries))

system_abseil = repository_rule(
    implementation = _system_abseil_impl,
    configure = True,
    environ = ["PKG_CONFIG_PATH"],
    local = True,
)
