"""Debian's libprotobuf-dev and protobuf-compiler under the labels of the protobuf module."""

load("//third_party:debian_library.bzl", "debian_build_file", "debian_cc_library")

_TOOLCHAIN = """
exports_files(["protoc"])

proto_lang_toolchain(
    name = "cc_toolchain",
    command_line = "--cpp_out=$(OUT)",
    runtime = ":protobuf",
)
"""

_MISSING_PROTOC = """#!/bin/sh
echo 'Debian package protobuf-compiler is not installed; tools/setup installs all that is needed' >&2
exit 1
"""

def _system_protobuf_impl(ctx):
    protoc = ctx.which("protoc")
    if protoc:
        ctx.symlink(protoc, "protoc")
    else:
        ctx.file("protoc", _MISSING_PROTOC, executable = True)
    installed = ctx.path("/usr/include/google/protobuf/message.h").exists
    library = debian_cc_library("protobuf", "libprotobuf-dev", ["-lprotobuf", "-lpthread"], installed)
    ctx.file("BUILD.bazel", debian_build_file([library, _TOOLCHAIN]))
    ctx.file("bazel/BUILD.bazel")
    ctx.file("bazel/proto_library.bzl", "proto_library = native.proto_library")
    ctx.file("bazel/cc_proto_library.bzl", "cc_proto_library = native.cc_proto_library")

system_protobuf = repository_rule(
    implementation = _system_protobuf_impl,
    configure = True,
    environ = ["PATH"],
    local = True,
)
