"""Reads a page as a browser would, and complains about what a browser would forgive."""

from __future__ import annotations

import base64
import hashlib
import itertools
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "link", "br", "img", "input", "hr"}

#: Attributes that make a browser fetch something.
LOADING = ("src", "srcset", "poster", "data", "background", "action", "formaction", "ping", "manifest")


@dataclass
class Tag:
    name: str
    attributes: dict[str, str]
    text: str = ""
    parents: tuple[str, ...] = ()


@dataclass
class PageReader(HTMLParser):
    """All tags with their text, and what is wrong with them."""

    tags: list[Tag] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._open: list[Tag] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        if len(set(names)) < len(names):
            self.problems.append(f"{tag} has an attribute twice")
        found = Tag(tag, {name: value or "" for name, value in attrs}, parents=tuple(t.name for t in self._open))
        self.tags.append(found)
        if tag not in VOID:
            self._open.append(found)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open[-1].name != tag:
            self.problems.append(f"</{tag}> closes {self._open[-1].name if self._open else 'nothing'}")
            return
        self._open.pop()

    def handle_data(self, data: str) -> None:
        for tag in self._open:
            tag.text += data

    def all(self, name: str) -> list[Tag]:
        return [tag for tag in self.tags if tag.name == name]

    @property
    def body_text(self) -> str:
        return self.all("body")[0].text


def read(html: str) -> PageReader:
    reader = PageReader()
    reader.feed(html)
    reader.close()
    reader.problems.extend(f"{tag.name} is never closed" for tag in reader._open)
    return reader


def problems(html: str) -> list[str]:
    """Everything that a page of ours must not be: broken, ambiguous, or in need of something from elsewhere."""
    page = read(html)
    found = list(page.problems)
    ids = [tag.attributes["id"] for tag in page.tags if "id" in tag.attributes]
    found += [f"id {name} is there twice" for name in {name for name in ids if ids.count(name) > 1}]
    for tag in page.tags:
        found += _loads(tag)
        found += [f"{tag.name} has a handler {name}" for name in tag.attributes if name.startswith("on")]
        found += [f"{tag.name} has a style" for name in tag.attributes if name == "style"]
        for name in ("aria-labelledby", "aria-describedby", "for"):
            found += [f"{name} leads nowhere" for each in tag.attributes.get(name, "").split() if each not in ids]
        target = tag.attributes.get("href", "")
        if target.startswith("#") and target[1:] not in ids:
            found.append(f"{target} leads nowhere")
    return [*found, *_headings(page), *_policy(page), *_tables(page)]


def _loads(tag: Tag) -> list[str]:
    found = [f"{tag.name} {name}" for name in LOADING if name in tag.attributes]
    if tag.name in ("iframe", "object", "embed", "base", "form", "img", "audio", "video", "foreignobject"):
        found.append(f"a tag {tag.name}")
    for name in ("href", "xlink:href"):
        if name not in tag.attributes:
            continue
        target = tag.attributes[name]
        if tag.name == "a":
            if not re.match(r"#|data:(application/json|text/csv|text/plain);base64,|https://", target):
                found.append(f"a link to {target[:60]}")
        elif tag.name == "link":
            if target != "data:,":
                found.append(f"link {target}")
        elif target and not target.startswith(("#", "data:image/png;base64,")):
            found.append(f"{tag.name} {name} {target[:60]}")
    if tag.name in ("style", "script") and re.search(r"https?:|@import|url\(", tag.text):
        found.append(f"{tag.name} speaks of another place")
    return found


def _headings(page: PageReader) -> list[str]:
    levels = [int(tag.name[1]) for tag in page.tags if re.fullmatch(r"h[1-6]", tag.name)]
    found = [] if levels.count(1) == 1 and levels[0] == 1 else ["not one h1, first"]
    return found + [f"h{b} behind h{a}" for a, b in itertools.pairwise(levels) if b > a + 1]


def _policy(page: PageReader) -> list[str]:
    metas = [tag.attributes.get("content", "") for tag in page.all("meta") if "http-equiv" in tag.attributes]
    if len(metas) != 1 or not metas[0].startswith("default-src 'none';"):
        return [f"policy: {metas}"]
    found = [word for word in ("unsafe", "*", "http:", "https:") if word in metas[0]]
    for name in ("style", "script"):
        tags = page.all(name)
        if len(tags) != 1:
            found.append(f"{len(tags)} tags {name}")
        digest = base64.b64encode(hashlib.sha256(tags[0].text.encode()).digest()).decode()
        if f"{name}-src 'sha256-{digest}'" not in metas[0]:
            found.append(f"the policy does not allow {name}")
    return found


def _tables(page: PageReader) -> list[str]:
    heads = [tag for tag in page.all("th") if tag.attributes.get("scope") not in ("col", "row", "colgroup")]
    found = ["th without scope"] * len(heads)
    return found + ["table without caption"] * (len(page.all("table")) - len(page.all("caption")))
