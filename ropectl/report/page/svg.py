"""Figures for a page whose policy allows no style that the page did not foresee: attributes instead of styles."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

_SVG = "http://www.w3.org/2000/svg"

#: All that figures consist of. Anything else, such as a script, is left out with what is in it.
_ELEMENTS = frozenset(
    {"svg", "g", "path", "use", "defs", "clipPath", "rect", "circle", "line", "polyline", "polygon", "ellipse"}
    | {"text", "tspan", "title", "desc", "image", "pattern", "linearGradient", "stop", "marker"}
)

#: Properties of a style that are attributes too.
_PROPERTIES = frozenset(
    {"fill", "fill-opacity", "fill-rule", "stroke", "stroke-width", "stroke-opacity", "stroke-linejoin"}
    | {"stroke-linecap", "stroke-dasharray", "stroke-dashoffset", "stroke-miterlimit", "opacity", "clip-path"}
    | {"clip-rule", "font-family", "font-size", "font-style", "font-weight", "text-anchor", "stop-color", "color"}
    | {"stop-opacity", "visibility", "dominant-baseline"}
)

#: ``font: italic 700 10px 'A', 'B', serif``.
_FONT = re.compile(r"(?P<before>.*?)(?P<size>[\d.]+(?:px|pt|em|%)?)(?:/\S+)?\s+(?P<family>\D.*)")

#: ``#name`` and ``url(#name)``.
_REFERENCE = re.compile(r"#([^)\s\"']+)")

_WEIGHTS = frozenset({"bold", "100", "200", "300", "400", "500", "600", "700", "800", "900"})


def policed(svg: str) -> str:
    """Returns an SVG element without scripts, links, handlers and styles, looking the same.

    Args:
        svg: The element, or a file.

    Raises:
        ValueError: If it is no SVG.
    """
    try:
        root = ET.fromstring(svg)
    except ET.ParseError as error:
        raise ValueError(f"no SVG: {error}") from None
    if _name(root.tag) != "svg":
        raise ValueError(f"no SVG, but {_name(root.tag)}")
    _clean(root)
    _drop_ids(root)
    root.set("xmlns", _SVG)
    root.attrib.setdefault("stroke-linejoin", "round")
    return ET.tostring(root, encoding="unicode")


def _name(tag: object) -> str:
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def _clean(element: ET.Element) -> None:
    element.tag = _name(element.tag)
    for child in list(element):
        if _name(child.tag) in _ELEMENTS:
            _clean(child)
        else:
            element.remove(child)
    for key, value in list(element.attrib.items()):
        del element.attrib[key]
        name = _name(key)
        if name == "style":
            for own, property_value in _properties(value).items():
                element.set(own, property_value)
        elif _is_harmless(name, value):
            element.set(name, value)


def _drop_ids(root: ET.Element) -> None:
    """Takes out the ids that nothing refers to, and those that are there already: equal images are called alike."""
    used = {name for element in root.iter() for value in element.attrib.values() for name in _REFERENCE.findall(value)}
    used.update(name for element in root.iter() for name in element.get("aria-labelledby", "").split())
    for element in root.iter():
        name = element.get("id")
        if name is not None and name not in used:
            del element.attrib["id"]
        elif name is not None:
            used.discard(name)


def _is_harmless(name: str, value: str) -> bool:
    if name.lower().startswith("on"):
        return False
    if name == "href":
        return value.startswith(("#", "data:image/png;base64,"))
    return "javascript:" not in value.lower() and ("url(" not in value or value.startswith("url(#"))


def _properties(style: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for declaration in style.split(";"):
        name, _, value = (part.strip() for part in declaration.partition(":"))
        if name == "font" and (font := _FONT.fullmatch(value)):
            found["font-size"], found["font-family"] = font["size"], font["family"]
            for word in font["before"].split():
                if word in _WEIGHTS:
                    found["font-weight"] = word
                elif word in ("italic", "oblique"):
                    found["font-style"] = word
        elif name in _PROPERTIES and ("url(" not in value or value.startswith("url(#")):
            found[name] = value
    return found
