"""Make a wheel of one platform from the pure one: with kernels compiled for AVX2 and AVX-512.

python tools/native_wheel.py dist/elmo_framework-1.0-py3-none-any.whl --output-dir dist/native
"""

from __future__ import annotations

import base64
import hashlib
import platform
import subprocess
import sys
import sysconfig
from argparse import ArgumentParser
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from elmo_framework.kernels import compiler as kernels
from elmo_framework.kernels.compiler import LINK_OPTIONS, SOURCES, compile_options
from elmo_framework.kernels.prebuilt import LEVELS, prebuilt_path

_PURE = "py3-none-any"


def main() -> int:
    """Compile the kernels and write the wheel; return the exit code."""
    parser = ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("wheel", type=Path, help="the pure wheel")
    parser.add_argument("--output-dir", type=Path, required=True, help="of the native wheel")
    parser.add_argument("--compiler", default="cc", help="the C compiler (cc)")
    arguments = parser.parse_args()
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        sys.stderr.write("native wheels are for Linux on x86-64\n")
        return 2
    arguments.output_dir.mkdir(parents=True, exist_ok=True)
    sys.stdout.write(f"{native_wheel(arguments.wheel, arguments.output_dir, arguments.compiler)}\n")
    return 0


def native_wheel(pure: Path, directory: Path, compiler: str) -> Path:
    """Write the native wheel; the same wheel and compiler give the same bytes."""
    tag = f"py3-none-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
    path = directory / pure.name.replace(_PURE, tag)
    with ZipFile(pure) as source:
        infos = source.infolist()
        date = infos[0].date_time
        files = {info.filename: source.read(info) for info in infos}
    root = Path(__file__).parents[1]
    for library, content in compiled_kernels(compiler).items():
        files[str(library.relative_to(root))] = content
    (metadata,) = (name for name in files if name.endswith(".dist-info/WHEEL"))
    text = files[metadata].decode().replace(_PURE, tag)
    files[metadata] = text.replace("Root-Is-Purelib: true", "Root-Is-Purelib: false").encode()
    record = metadata.replace("WHEEL", "RECORD")
    del files[record]  # written last
    files[record] = "".join([*map(_line, files, files.values()), f"{record},,\n"]).encode()
    with ZipFile(path, "w", ZIP_DEFLATED) as target:
        for name, content in files.items():
            info = ZipInfo(name, date)
            info.external_attr, info.compress_type = 0o644 << 16, ZIP_DEFLATED
            target.writestr(info, content)
    return path


def compiled_kernels(compiler: str) -> dict[Path, bytes]:
    """Return the libraries of all kernels for all levels, by their places in this checkout."""
    libraries = {}
    for module in Path(kernels.__file__).parent.glob("*.py"):
        if not module.stem.startswith("triton"):  # they need Triton, and are not in C
            import_module(f"elmo_framework.kernels.{module.stem}")  # registers its source
    with TemporaryDirectory() as folder:
        compiled, linked = Path(folder) / "compiled.o", Path(folder) / "linked.so"
        for source, fast_math in sorted(SOURCES.items()):
            for level in LEVELS:
                options = compile_options(level.options, fast_math=fast_math)
                _run([compiler, *options, str(source), "-o", str(compiled)])
                _run([compiler, *LINK_OPTIONS, str(compiled), "-o", str(linked), "-lm"])
                libraries[prebuilt_path(source, level)] = linked.read_bytes()
    return libraries


def _run(command: list[str]) -> None:
    subprocess.run(command, check=True)


def _line(name: str, content: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(content)}\n"


if __name__ == "__main__":
    sys.exit(main())
