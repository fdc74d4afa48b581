"""Kind 5: results that would land in checkpoints, in sources, or among files of something else."""

from __future__ import annotations

from collections.abc import Iterator

from fuzz.case import Case, also_at, device, directory, file, json_file, link, listening, pipe
from fuzz.templates import template

_NOTES = file("mine/notes.txt", "mine")
_CELL = '{"schema_version": 1, "settings": {}, "result": {}}'

#: Commands that write one file, and what its name ends in.
_FILES = ("eval-perplexity", "eval-passkey", "eval-tasks", "harness", "verify-runtime")


def cases() -> Iterator[Case]:
    """Yields the cases of this kind."""
    yield from _run_folders()
    yield from _checkpoints()
    yield from _single_files()
    yield from _pages()


def _run_folders() -> Iterator[Case]:
    """Yields what a comparison's folder can be."""
    each = template("compare-methods")
    for wrong, steps, place in (
        ("the source", (), "model"),
        ("inside the source", (), "model/run"),
        ("the folder that the source is in", (), "."),
        ("a link to the source", (link("run", "model"),), "run"),
        ("another checkpoint", (also_at("run", "model"),), "run"),
        ("inside another checkpoint", (also_at("other", "model"),), "other/run"),
        ("a folder with foreign files", (_NOTES,), "mine"),
        ("a folder with a foreign folder", (directory("mine/photos"),), "mine"),
        ("a folder with hidden foreign files", (file("mine/.git/config", "x"),), "mine"),
        ("a file", (), "text.txt"),
        ("a link to nothing", (link("run", "nowhere"),), "run"),
        ("a link to itself", (link("run", "run"),), "run"),
        ("a pipe", (pipe("run"),), "run"),
        ("a socket", (listening("run"),), "run"),
        ("a device", (device("run", "null"),), "run"),
        ("a training's folder", (json_file("run/run.json", {"settings": {}}),), "run"),
        ("a link to a folder with foreign files", (_NOTES, link("run", "mine")), "run"),
    ):
        yield each.case(5, f"the run folder is {wrong}", *steps, swap={"run": place})
        if wrong not in ("a link to nothing", "a link to itself"):
            dry = template("compare-methods --dry-run")
            yield dry.case(5, f"the run folder is {wrong}", *steps, more=("-o", place))
    for name in ("cells", "plan.json", "comparison.json"):
        for wrong, step in (
            ("a pipe", pipe(f"run/{name}")),
            ("a socket", listening(f"run/{name}")),
            ("a link to nothing", link(f"run/{name}", "nowhere")),
            ("a link to itself", link(f"run/{name}", name)),
            ("a link to outside", link(f"run/{name}", "../model")),
            ("a file", file(f"run/{name}", "mine")),
            ("a folder", directory(f"run/{name}/x")),
            ("a device", device(f"run/{name}", "full")),
        ):
            is_usual = (name == "cells") == (wrong == "a folder")
            if not is_usual or wrong not in ("a folder", "a file"):
                yield each.case(5, f"in the run folder, {name} is {wrong}", step)
    for content in ("[]", "5", "", "{", '{"plan": 1}', "\ufeff{}", '{"schema_version": 99}'):
        yield each.case(5, f"a plan.json of another program: {content!r}", file("run/plan.json", content))


def _checkpoints() -> Iterator[Case]:
    """Yields what stands where patch and finetune write."""
    for name, place in (("patch", "out"), ("patch --dry-run", "out"), ("finetune", "tuned")):
        each = template(name)
        for wrong, steps, out in (
            ("the source", (), "model"),
            ("the source, written otherwise", (), "./model/../model"),
            ("inside the source", (), "model/out"),
            ("the folder that the source is in", (), "."),
            ("the folder above", (), ".."),
            ("a link to the source", (link(place, "model"),), place),
            ("below a link to the source", (link("l", "model"),), f"l/{place}"),
            ("another checkpoint", (also_at(place, "model"),), place),
            ("a folder with foreign files", (_NOTES,), "mine"),
            ("a folder with hidden foreign files", (file("mine/.git/config", "x"),), "mine"),
            ("a file", (), "text.txt"),
            ("a link to nothing", (link(place, "nowhere"),), place),
            ("a link to itself", (link(place, place),), place),
            ("a link to a folder with foreign files", (_NOTES, link(place, "mine")), place),
            ("a pipe", (pipe(place),), place),
            ("a socket", (listening(place),), place),
            ("a device", (device(place, "null"),), place),
        ):
            yield each.case(5, f"--out is {wrong}", *steps, swap={place: out})
            if wrong != "another checkpoint":
                yield each.case(
                    5, f"--out is {wrong}, to be replaced", *steps, swap={place: out}, more=("--overwrite",)
                )
    each = template("finetune")
    for wrong, step in (
        ("a file", file("tuned.run", "mine")),
        ("a pipe", pipe("tuned.run")),
        ("a link to nothing", link("tuned.run", "nowhere")),
        ("a link to itself", link("tuned.run", "tuned.run")),
        ("a link to the source", link("tuned.run", "model")),
        ("a folder with foreign files", file("tuned.run/notes.txt", "mine")),
        ("a checkpoint", also_at("tuned.run", "model")),
        ("the folder of a comparison", file("tuned.run/cells/x.json", _CELL)),
        ("a run with a damaged run.json", file("tuned.run/run.json", "{")),
        ("a run with a run.json of another program", file("tuned.run/run.json", "[]")),
        ("a run with a run.json of other settings", json_file("tuned.run/run.json", {"settings": {"steps": 7}})),
        ("a run with a run.json that is a pipe", pipe("tuned.run/run.json")),
        ("a run with a folder run.json", directory("tuned.run/run.json")),
    ):
        yield each.case(5, f"tuned.run is {wrong}", step)
        if "run.json" not in wrong:
            yield each.case(5, f"tuned.run is {wrong}, to be replaced", step, more=("--overwrite",))
            yield each.case(5, f"tuned.run is {wrong}, to begin anew", step, more=("--no-resume",))


def _single_files() -> Iterator[Case]:
    """Yields what stands where a result of one file is written."""
    for command in _FILES:
        each = template(command)
        for wrong, steps, out in (
            ("a part of the source", (), "model/config.json"),
            ("the weights of the source", (), "model/model.safetensors"),
            ("a new file inside the source", (), "model/result.json"),
            ("a new file in a folder inside the source", (), "model/results/result.json"),
            ("below a link to the source", (link("l", "model"),), "l/result.json"),
            ("a link to a part of the source", (link("r.json", "model/config.json"),), "r.json"),
            ("a link to nothing", (link("r.json", "nowhere"),), "r.json"),
            ("a link into nothing", (link("r.json", "no/such/folder/x"),), "r.json"),
            ("a link to itself", (link("r.json", "r.json"),), "r.json"),
            ("a folder", (), "model"),
            ("a pipe", (pipe("r.json"),), "r.json"),
            ("a device", (device("r.json", "full"),), "r.json"),
            ("a socket", (listening("r.json"),), "r.json"),
            ("the place itself", (), "."),
            ("the folder above", (), ".."),
            ("a name that ends in a slash", (), "results/"),
        ):
            yield each.case(5, f"--out is {wrong}", *steps, more=("-o", out))
            yield each.case(5, f"--out is {wrong}, to be replaced", *steps, more=("-o", out, "--overwrite"))
        if "text" in each.reads:
            yield each.case(5, "--out is the text", more=("-o", "text.txt"))
            yield each.case(5, "--out is the text, to be replaced", more=("-o", "text.txt", "--overwrite"))
        yield each.case(5, "--out is there", more=("-o", "record.json"), mentions=("--overwrite",))
    yield template("verify-runtime").case(5, "--out is the Python", more=("-o", "python", "--overwrite"))
    each = template("inspect")
    for out in ("model/config.svg", "model/x.png"):
        yield each.case(5, "--plot is inside the source", more=("--plot", out))
    for out, steps in (("x.svg", (link("x.svg", "nowhere"),)), ("x.svg", (link("x.svg", "model/config.json"),))):
        yield each.case(5, "--plot is a link", *steps, more=("--plot", out))


def _pages() -> Iterator[Case]:
    """Yields what stands where a report is written."""
    each = template("report")
    for wrong, steps, out in (
        ("its own record", (), "record.json"),
        ("a text", (), "text.txt"),
        ("a page of another program", (file("p.html", "<html>mine</html>"),), "p.html"),
        ("a link to nothing", (link("p.html", "nowhere.html"),), "p.html"),
        ("a link to its record", (link("p.html", "record.json"),), "p.html"),
        ("a link to itself", (link("p.html", "p.html"),), "p.html"),
        ("a pipe", (pipe("p.html"),), "p.html"),
        ("a device", (device("p.html", "null"),), "p.html"),
        ("a socket", (listening("p.html"),), "p.html"),
        ("a folder", (directory("p.html"),), "p.html"),
        ("inside a checkpoint", (), "model/p.html"),
    ):
        yield each.case(5, f"the page is {wrong}", *steps, more=("-o", out))
        if wrong not in ("a page of another program",):
            yield each.case(5, f"the page is {wrong}, to be replaced", *steps, more=("-o", out, "--overwrite"))
    for wrong, steps, out in (
        ("a file", (), "text.txt"),
        ("a pipe", (pipe("f"),), "f"),
        ("a link to nothing", (link("f", "nowhere"),), "f"),
        ("a link to itself", (link("f", "f"),), "f"),
        ("a checkpoint", (), "model"),
        ("inside a checkpoint", (), "model/figures"),
        ("a device", (device("f", "null"),), "f"),
    ):
        yield each.case(5, f"--figures is {wrong}", *steps, more=("-o", "p.html", "--figures", out))
    for wrong, steps in (
        ("a checkpoint that is no run", ()),
        ("an empty folder", (directory("empty"),)),
        ("a folder of foreign files", (_NOTES,)),
    ):
        place = {"a checkpoint that is no run": "model", "an empty folder": "empty"}.get(wrong, "mine")
        yield each.case(5, f"a report of {wrong}", *steps, swap={"record.json": place})
