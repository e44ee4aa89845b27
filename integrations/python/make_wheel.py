"""Packs the package optim_test_tools as a wheel: make_wheel.py WHEEL EXTENSION_SUFFIX VERSION README FILE...

README is the page on PyPI; FILE... lies in a folder optim_test_tools/. The wheel has the same bytes for the same files. Its platform is
that of the machine, not a manylinux one: the extension module uses the machine's Abseil, Protocol Buffers and what else was found when it
was built.
"""

import base64
import hashlib
import os
import sys
import zipfile

FOLDER = "optim_test_tools/"

METADATA = """Metadata-Version: 2.1
Name: optim-test-tools
Version: {version}
Summary: Tools for making distributed training faster and proving that nothing broke on the way
License: Apache-2.0
Requires-Python: >=3.8
Description-Content-Type: text/markdown

{readme}"""

WHEEL = """Wheel-Version: 1.0
Generator: optim_test_tools
Root-Is-Purelib: false
Tag: {tag}
"""


def add(archive, record, name, contents):
    info = zipfile.ZipInfo(name)  # of 1980
    info.compress_type = zipfile.ZIP_DEFLATED
    info.external_attr = (0o755 if name.endswith(".so") else 0o644) << 16
    archive.writestr(info, contents)
    digest = base64.urlsafe_b64encode(hashlib.sha256(contents).digest()).rstrip(b"=").decode()
    record.append(f"{name},sha256={digest},{len(contents)}")


def main(wheel, suffix, version, readme, *files):
    with open(readme, encoding="utf-8") as file:
        metadata = METADATA.format(version=version, readme=file.read())
    tag = os.path.basename(wheel)[: -len(".whl")].split("-", 2)[2]
    info = f"optim_test_tools-{version}.dist-info"
    record = []
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, path in sorted((path.rpartition(FOLDER)[2], path) for path in files):
            if name.endswith(".so"):
                name = name[: -len(".so")] + suffix
            with open(path, "rb") as file:
                add(archive, record, FOLDER + name, file.read())
        add(archive, record, f"{info}/METADATA", metadata.encode())
        add(archive, record, f"{info}/WHEEL", WHEEL.format(tag=tag).encode())
        record.append(f"{info}/RECORD,,")
        archive.writestr(zipfile.ZipInfo(f"{info}/RECORD"), "\n".join(record) + "\n")


main(*sys.argv[1:])
