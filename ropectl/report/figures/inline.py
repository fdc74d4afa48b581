"""Figures as SVG inside of a page, where several stand side by side and share one set of styles and ids."""

from __future__ import annotations

import hashlib
import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence

_SVG = "http://www.w3.org/2000/svg"

#: What matplotlib's style sheet sets on everything; in a page it would be set on all of the page.
_INHERITED = "stroke-linejoin: round; stroke-linecap: butt"


def inlined(content: bytes, title: str, prefix: str, size: Sequence[float]) -> str:
    """Returns an SVG file as an element to stand in HTML: self-contained, without prolog, style sheet or metadata.

    Args:
        content: The file that matplotlib wrote.
        title: What it is to those who cannot see it.
        prefix: Put before every id; where empty, one that follows from the content.
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
    attributes = {
        "xmlns": _SVG,
        "role": "img",
        "aria-labelledby": f"{prefix}title",
        "width": width,
        "height": height,
        "style": f"max-width: 100%; height: auto; {_INHERITED}",
    }
    for key, value in attributes.items():
        root.set(key, value)
    return ET.tostring(root, encoding="unicode")


def _localise(element: ET.Element, prefix: str) -> None:
    """Takes the namespaces off a tag and its attributes, and puts the prefix on its id and on those it refers to."""
    element.tag = element.tag.rpartition("}")[2]
    for key, value in list(element.attrib.items()):
        del element.attrib[key]
        key = key.rpartition("}")[2]
        if key == "id":
            value = prefix + value
        elif key == "href":
            value = value.replace("#", f"#{prefix}", 1)
        else:
            value = re.sub(r"url\(#", f"url(#{prefix}", value)
        element.set(key, value)
