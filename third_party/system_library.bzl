"""A C library of the machine, as a repository that loads whether or not it is installed.

The repository has the headers under include/ and a found.bzl with

  FOUND     True iff the header, and the library where one is named, were found,
  LINKOPTS  what links the library, empty if it was not.
"""

def _find(ctx, prefixes, subdirs, file):
    for prefix in prefixes:
        for subdir in subdirs:
            path = ctx.path("/".join([prefix, subdir, file]))
            if path.exists:
                return path
    return None

def _prefixes(ctx, multiarch):
    environ = ctx.os.environ
    for home in ctx.attr.homes:
        if home in environ:
            return [environ[home]]
    prefixes = []
    for module in ctx.attr.pkg_config:
        # Modules of spack, conda and of clusters set what it reads.
        answer = ctx.execute(["sh", "-c", "dirname $(pkg-config --variable=includedir %s)" % module])
        prefixes += [answer.stdout.strip()] if answer.return_code == 0 else []
    if "CONDA_PREFIX" in environ:
        prefixes.append(environ["CONDA_PREFIX"])
    cache = environ.get("XDG_CACHE_HOME", environ.get("HOME", "") + "/.cache")
    return (prefixes + [prefix.format(multiarch = multiarch) for prefix in ctx.attr.prefixes] +
            [cache + "/optim_test_tools/" + folder for folder in ctx.attr.cached])

def _link_headers(ctx, header):
    # Only the library's own headers: a folder such as /usr/include holds the whole machine's.
    if "/" in ctx.attr.header:
        for folder in [ctx.attr.header.split("/")[0]] + ctx.attr.more_folders:
            ctx.symlink(header.dirname.dirname.get_child(folder), "include/" + folder)
    elif ctx.attr.single_header:
        ctx.symlink(header, "include/" + ctx.attr.header)
    else:
        ctx.symlink(header.dirname, "include")

def _system_library_impl(ctx):
    # Debian and Ubuntu keep libraries here: x86_64-linux-gnu, aarch64-linux-gnu.
    multiarch = ctx.execute(["uname", "-m"]).stdout.strip() + "-linux-gnu"
    prefixes = _prefixes(ctx, multiarch)
    header = _find(ctx, prefixes, ["include"], ctx.attr.header)
    library = None
    if ctx.attr.library:
        library = _find(ctx, prefixes, ["lib64", "lib", "lib/" + multiarch], ctx.attr.library)
    found = header != None and (library != None or not ctx.attr.library)

    if found:
        _link_headers(ctx, header)
    linkopts = [
        "-L%s" % library.dirname,
        "-Wl,-rpath,%s" % library.dirname,
        "-l:%s" % ctx.attr.library,
    ] if found and library else []

    ctx.file("found.bzl", "FOUND = %r\nLINKOPTS = %r\n" % (found, linkopts))
    if ctx.attr.compiler:
        compiler = _find(ctx, prefixes, ["bin"], ctx.attr.compiler)
        ctx.file(ctx.attr.compiler + ".sh", "#!/bin/sh\nexec %s \"$@\"\n" % (compiler or "false"), executable = True)
    ctx.symlink(ctx.attr.build_file, "BUILD.bazel")

system_library = repository_rule(
    implementation = _system_library_impl,
    attrs = {
        "build_file": attr.label(mandatory = True),
        "cached": attr.string_list(doc = "Prefixes searched last, below the cache that tools/setup fills."),
        "compiler": attr.string(doc = "A program under bin/ to wrap as COMPILER.sh."),
        "header": attr.string(mandatory = True),
        "homes": attr.string_list(doc = "Environment variables; the first that is set is the only prefix searched."),
        "library": attr.string(doc = "Empty for a library of headers alone."),
        "more_folders": attr.string_list(doc = "Of headers, beside the folder that HEADER is in."),
        "pkg_config": attr.string_list(doc = "Modules whose folders of headers lie in a prefix that is searched before PREFIXES."),
        "prefixes": attr.string_list(doc = "Where {multiarch} is Debian's name of the machine's architecture."),
        "single_header": attr.bool(doc = "Take HEADER alone from its folder, which holds other libraries' headers."),
    },
    configure = True,
    environ = [
        "CONDA_PREFIX",
        "CUDA_HOME",
        "MPI_HOME",
        "NCCL_HOME",
        "NVTX_HOME",
        "PKG_CONFIG_PATH",
        "TORCH_HOME",
        "XDG_CACHE_HOME",
    ],
    local = True,
)
