"""Targets that need LibTorch."""

def needs_torch():
    """For target_compatible_with: what has it is skipped where LibTorch is missing."""
    return select({
        str(Label("//third_party/torch:available")): [],
        "//conditions:default": ["@platforms//:incompatible"],
    })
