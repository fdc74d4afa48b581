"""Figures as SVG inside a page, whose policy allows no styles and which holds several of them."""

from __future__ import annotations

import hashlib
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence

_SVG = "http://www.w3.org/2000/svg"

#: The settings of matplotlib's style sheet, which in a page would apply to the whole page.
_INHERITED = {"stroke-linejoin": "round", "stroke-linecap": "butt"}

#: ``font: italic 700 10px 'A', 'B', serif``.
_FONT = re.compile(r"(?P<before>.*?)(?P<size>[\d.]+(?:px|pt|em|%)?)\s+(?P<family>\D.*)")

#: ``#name`` and ``url(#name)``.
_REFERENCE = re.compile(r"#([^)\s\"']+)")


def inlined(content: bytes, title: str, prefix: str, size: Sequence[float]) -> str:
    """Returns an SVG file as a self-contained HTML element, without prolog, styles or metadata.

    Texts in it remain texts: whatever is in a name is escaped when the element is written.

    Args:
        content: The file that matplotlib wrote.
        title: Text for readers who cannot see it.
        prefix: Begins every id; if empty, one that follows from the content.
        size: Width and height at which its text has the intended size [inch].
    """
    prefix = prefix or f"f{hashlib.sha256(content).hexdigest()[:10]}-"
    root = ET.fromstring(content)
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in (f"{{{_SVG}}}metadata", f"{{{_SVG}}}style"):
                parent.remove(child)
    for element in root.iter():
        _localise(element, prefix)
    name = ET.Element("title", {"id": f"{prefix}title"})
    name.text = title
    root.insert(0, name)
    width, height = (f"{length * 96:.0f}" for length in size)  # a CSS pixel is 1/96 inch
    shape = {"xmlns": _SVG, "role": "img", "aria-labelledby": f"{prefix}title", "width": width, "height": height}
    for key, value in {**shape, **_INHERITED}.items():
        root.set(key, value)
    _drop_ids(root)
    return ET.tostring(root, encoding="unicode")


def _localise(element: ET.Element, prefix: str) -> None:
    """Removes namespaces, turns styles into attributes, and prefixes the id and those that the element refers to."""
    element.tag = element.tag.rpartition("}")[2]
    attributes = {key.rpartition("}")[2]: value for key, value in element.attrib.items()}
    attributes.update(_properties(attributes.pop("style", "")))
    element.attrib.clear()
    for key, value in attributes.items():
        if key == "id":
            value = prefix + value
        elif key == "href" and value.startswith("#"):
            value = f"#{prefix}{value[1:]}"
        else:
            value = value.replace("url(#", f"url(#{prefix}")
        element.set(key, value)


def _properties(style: str) -> Iterator[tuple[str, str]]:
    """Yields the properties of a style; SVG has attributes for all of them, except for a font's short form."""
    for declaration in filter(None, map(str.strip, style.split(";"))):
        name, _, value = (part.strip() for part in declaration.partition(":"))
        if name == "font" and (font := _FONT.fullmatch(value)):
            yield from (("font-size", font["size"]), ("font-family", font["family"]))
            yield from (
                ("font-style" if word.isalpha() and word != "bold" else "font-weight", word)
                for word in font["before"].split()
            )
        else:
            yield name, value


def _drop_ids(root: ET.Element) -> None:
    """Removes ids that nothing refers to, and repeated ones: equal images have the same id."""
    used = {name for element in root.iter() for value in element.attrib.values() for name in _REFERENCE.findall(value)}
    used.add(root.get("aria-labelledby", ""))
    for element in root.iter():
        name = element.get("id")
        if name is not None and name not in used:
            del element.attrib["id"]
        elif name is not None:
            used.discard(name)
