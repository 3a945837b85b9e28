"""Makes the scripts of others again from their npm packages, and compares them with what the page serves. It needs npm.

`make vendor` runs it. After a new version in `vendor.json`, `--write` puts its files and their sha256 in place.
"""

import base64
import hashlib
import json
import re
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

STATIC: Final = Path(__file__).parents[3] / "kalito_mcp" / "web" / "page" / "static"
LIST: Final = STATIC / "vendor.json"
_SOURCE_MAP: Final = re.compile(rb"\n?//# sourceMappingURL=.*")


def vendored() -> list[dict[str, Any]]:
    """What the page has from others: one entry a file."""
    found: list[dict[str, Any]] = json.loads(LIST.read_text(encoding="utf-8"))
    return found


def made(entry: Mapping[str, Any]) -> tuple[bytes, bytes]:
    """A file made from its npm package, and the licence. The maps of the sources, which nobody serves, are left out."""
    with TemporaryDirectory() as folder:
        packed = subprocess.run(
            ["npm", "pack", "--silent", f"{entry['name']}@{entry['version']}"],
            cwd=folder,
            check=True,
            capture_output=True,
            text=True,
        )
        archive = Path(folder) / packed.stdout.strip().splitlines()[-1]
        digest = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
        if entry["integrity"] != f"sha512-{digest}":
            sys.exit(f"vendor: {entry['name']} is not the package of vendor.json, but sha512-{digest}")
        with tarfile.open(archive) as package:
            parts = [_read(package, name) for name in entry["made_of"]]
            licence = _read(package, "LICENSE")
    return b"\n;\n".join(_SOURCE_MAP.sub(b"", one).rstrip(b"\n") for one in parts), licence


def main() -> None:
    """Compare each file, or write it."""
    entries = vendored()
    for entry in entries:
        content, licence = made(entry)
        for name, found in ((entry["file"], content), (entry["licence_file"], licence)):
            if "--write" in sys.argv:
                (STATIC / name).write_bytes(found)
            elif (STATIC / name).read_bytes() != found:
                sys.exit(f"vendor: {name} is not what npm has; `python -m tests.web.page.vendored --write` renews it")
        entry["sha256"] = hashlib.sha256(content).hexdigest()
        print(f"{entry['file']}: {entry['name']} {entry['version']}")
    if "--write" in sys.argv:
        LIST.write_text(json.dumps(entries, indent=2) + "\n", encoding="utf-8")


def _read(package: tarfile.TarFile, name: str) -> bytes:
    file = package.extractfile(f"package/{name}")
    assert file is not None, name
    return file.read()


if __name__ == "__main__":
    main()
