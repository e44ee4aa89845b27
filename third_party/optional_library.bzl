"""Libraries that a build can do without: wanted is one thing, found another."""

load("@bazel_skylib//rules:common_settings.bzl", "bool_flag")

def optional_library(needs):
    """Declares in this package:

      :enable     a flag: is the library wanted? True by default, e.g. --//third_party/nccl:enable=False
      :available  a condition for select(): wanted, and found together with all it needs

    Args:
      needs: the repositories whose :found must hold.
    """
    bool_flag(
        name = "enable",
        build_setting_default = True,
        visibility = ["//visibility:public"],
    )
    flags = {"@%s//:found" % repository: "True" for repository in needs}
    flags[":enable"] = "True"
    native.config_setting(
        name = "available",
        flag_values = flags,
        visibility = ["//visibility:public"],
    )

def needs(library):
    """For target_compatible_with: what has it is skipped where third_party/LIBRARY is not available."""
    return select({
        str(Label("//third_party/%s:available" % library)): [],
        "//conditions:default": ["@platforms//:incompatible"],
    })
