"""The page that shows predictions: one document without any request but those to its server."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import final

_FOLDER = Path(__file__).parent / "static"


@final
@dataclass(frozen=True)
class Page:
    """A document with its style and its script, and the headers that permit only these two."""

    html: str
    headers: dict[str, str]

    @classmethod
    def read(cls) -> Page:
        html, style, script = (
            (_FOLDER / name).read_text(encoding="utf-8")
            for name in ("page.html", "page.css", "page.js")
        )
        policy = (
            "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
            f"connect-src 'self'; style-src {_digest(style)}; script-src {_digest(script)}"
        )
        whole = html.replace("/* style */", style).replace("/* script */", script)
        return cls(whole, {"Content-Security-Policy": policy})


def _digest(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
