"""The machine's libraries for bzlmod builds; the others come from the Bazel Central Registry."""

load(":system_libraries.bzl", "system_libraries")

system = module_extension(implementation = lambda ctx: system_libraries())
