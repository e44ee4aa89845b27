"""A C library of the machine, as a repository that loads whether or not it is installed.

The repository has the headers under include/ and a found.bzl with

  FOUND     True iff the header, and the library where one is named, were found,
  LINKOPTS  what links the library, empty if it was not.
"""

def _first(ctx, folders, file):
    """Returns the path of the file in the first of the folders that has it, else None."""
    for folder in folders:
        path = ctx.path(folder + "/" + file)
        if path.exists:
            return path
    return None

def _prefix(prefix, multiarch):
    folders = [prefix + "/lib64", prefix + "/lib", prefix + "/lib/" + multiarch]
    return struct(bin = prefix + "/bin", include = prefix + "/include", libraries = folders)

def _pkg_config(ctx, module):
    # Modules of spack, conda and of clusters set where it looks.
    ask = "pkg-config --variable=includedir %s && pkg-config --variable=libdir %s" % (module, module)
    answer = ctx.execute(["sh", "-c", ask])
    if answer.return_code != 0:
        return []
    headers, libraries = answer.stdout.strip().split("\n")
    return [struct(bin = libraries + "/../bin", include = headers, libraries = [libraries])]

def _places(ctx, multiarch):
    """Returns the places that are searched, in this order: each is folders that belong together."""
    environ = ctx.os.environ
    for home in ctx.attr.homes:
        if home in environ:
            return [_prefix(environ[home], multiarch)]
    places = []
    for module in ctx.attr.pkg_config:
        places += _pkg_config(ctx, module)

    # `conda activate` and `spack load` set these.
    prefixes = [environ.get("CONDA_PREFIX", "")] + environ.get("CMAKE_PREFIX_PATH", "").split(":")
    prefixes = [prefix for prefix in prefixes if prefix.startswith("/")]
    prefixes += [prefix.format(multiarch = multiarch) for prefix in ctx.attr.prefixes]
    cache = environ.get("XDG_CACHE_HOME", environ.get("HOME", "") + "/.cache")
    prefixes += [cache + "/optim_test_tools/" + folder for folder in ctx.attr.cached]
    return places + [_prefix(prefix, multiarch) for prefix in prefixes]

def _search_places(ctx, multiarch):
    """Returns header, library and bin of the first place that has all that is needed, else None."""
    for place in _places(ctx, multiarch):
        header = _first(ctx, [place.include], ctx.attr.header)
        library = _first(ctx, place.libraries, ctx.attr.library) if ctx.attr.library else None
        if header and (library or not ctx.attr.library):
            return struct(bin = place.bin, header = header, library = library)
    return None

# $1 is a header, $2 a library. Make's rule, which -M prints, names the header that was included first.
_ASK_COMPILER = """
printf '#include <%s>\n' "$1" | ${CC:-cc} -x c++ -M - | tr -s ' \\\\' '\n' | grep -m 1 "/$1$"
${CC:-cc} -print-file-name="$2"
"""

def _search_by_compiler(ctx):
    """As _search_places, where the C compiler looks, which CPATH and LIBRARY_PATH add to."""
    answer = ctx.execute(["sh", "-c", _ASK_COMPILER, "sh", ctx.attr.header, ctx.attr.library]).stdout.split("\n")
    if len(answer) < 2 or not answer[0].endswith("/" + ctx.attr.header):
        return None
    library = ctx.path(answer[1]) if ctx.attr.library and answer[1].startswith("/") else None
    if ctx.attr.library and not library:
        return None
    return struct(bin = None, header = ctx.path(answer[0]), library = library)

def _link_headers(ctx, header):
    # Only the library's own headers: a folder such as /usr/include holds the whole machine's.
    if "/" in ctx.attr.header:
        for folder in [ctx.attr.header.split("/")[0]] + ctx.attr.more_folders:
            ctx.symlink(header.dirname.dirname.get_child(folder), "include/" + folder)
    elif ctx.attr.single_header:
        ctx.symlink(header, "include/" + ctx.attr.header)
    elif str(header.dirname) != "/usr/include":
        ctx.symlink(header.dirname, "include")

def _system_library_impl(ctx):
    # Debian and Ubuntu keep libraries here: x86_64-linux-gnu, aarch64-linux-gnu.
    multiarch = ctx.execute(["uname", "-m"]).stdout.strip() + "-linux-gnu"
    found = _search_places(ctx, multiarch)

    # A home that is named is the only place.
    if not found and not [home for home in ctx.attr.homes if home in ctx.os.environ]:
        found = _search_by_compiler(ctx)

    linkopts = []
    if found:
        _link_headers(ctx, found.header)
        if found.library:
            folder = found.library.dirname
            linkopts = ["-L%s" % folder, "-Wl,-rpath,%s" % folder, "-l:%s" % ctx.attr.library]
            linkopts += ["-l:%s" % more for more in ctx.attr.more_libraries if folder.get_child(more).exists]
    ctx.file("found.bzl", "FOUND = %r\nLINKOPTS = %r\n" % (found != None, linkopts))
    if ctx.attr.compiler:
        compiler = None
        if found:
            compiler = _first(ctx, [found.bin], ctx.attr.compiler) if found.bin else ctx.which(ctx.attr.compiler)
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
        "more_libraries": attr.string_list(doc = "Linked as well where they lie beside LIBRARY."),
        "pkg_config": attr.string_list(doc = "Modules whose folders are searched before PREFIXES."),
        "prefixes": attr.string_list(doc = "Where {multiarch} is Debian's name of the machine's architecture."),
        "single_header": attr.bool(doc = "Take HEADER alone from its folder, which holds other libraries' headers."),
    },
    configure = True,
    environ = [
        "CC",
        "CMAKE_PREFIX_PATH",
        "CONDA_PREFIX",
        "CPATH",
        "CUDA_HOME",
        "LIBRARY_PATH",
        "MPI_HOME",
        "NCCL_HOME",
        "NVTX_HOME",
        "PKG_CONFIG_PATH",
        "TORCH_HOME",
        "XDG_CACHE_HOME",
    ],
    local = True,
)
