"""What the documents say is what the code does."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ropectl.builtin import TINY_MODEL_DIR
from ropectl.extras import EXTRAS
from tests.gguf.loadable_gguf import write_loadable
from tests.processes import run_python

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
CHINESE = (ROOT / "README.zh-CN.md").read_text()
PAGES = {path.name: path.read_text() for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))}
Run = Callable[..., tuple[int, str, str]]


@pytest.mark.process
def test_methods_table_is_up_to_date() -> None:
    done = run_python([ROOT / "scripts" / "gen_docs.py", "--check"])
    assert done.returncode == 0, done.stderr


def commands() -> list[list[str]]:
    """Those of every written page; the examples of docs/cli.md are tested where they come from."""
    blocks = [
        b for name, text in PAGES.items() if name != "cli.md" for b in re.findall(r"```bash\n(.*?)```", text, re.DOTALL)
    ]
    lines = [line for block in blocks for line in block.splitlines() if line.startswith("ropectl ")]
    return [shlex.split(line, comments=True)[1:] for line in dict.fromkeys(lines)]


@pytest.mark.process
@pytest.mark.parametrize("arguments", commands(), ids=" ".join)
@pytest.mark.usefixtures("warm_probe", "short_calibration")
def test_commands_are_accepted(
    ropectl: Run, arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Options, methods and values are right.

    What measures goes as far as loading weights, which its model has none of; ``patch`` really writes.
    """
    if any(argument.startswith("configs/") for argument in arguments):  # minutes of work on the built-in model
        assert all((ROOT / argument).is_file() for argument in arguments if argument.startswith("configs/"))
        assert ropectl(*arguments, "--print-config")[0] == 0
        return
    shutil.copytree(TINY_MODEL_DIR, tmp_path / "my-model")
    if arguments[0] != "patch":
        (tmp_path / "my-model" / "model.safetensors").unlink()
    if arguments[0] in ("compare-methods", "verify-runtime"):
        for name in ("my-model-yarn4", "my-model-tuned"):
            shutil.copytree(tmp_path / "my-model", tmp_path / name)
    write_loadable(tmp_path / "model.gguf", "llama", {}, {})
    shutil.copy(tmp_path / "model.gguf", tmp_path / "model.Q8_0.gguf")
    if arguments[0] in ("inspect", "methods", "patch"):  # the others stop where it is not
        shutil.copy(tmp_path / "model.gguf", tmp_path / "SmolLM2-135M-Instruct.Q4_1.gguf")
    (tmp_path / "books").mkdir()
    for name in ("books/a.txt", "novel.txt"):
        (tmp_path / name).write_text("A long story. " * 20_000)
    (tmp_path / "held-out").mkdir()
    (tmp_path / "held-out" / "b.txt").write_text("Another story. " * 20_000)
    for block in re.findall(r"```yaml\n(.*?)```", "".join(PAGES.values()), flags=re.DOTALL):
        if name := re.match(r"# (\S+\.yaml)", block):
            (tmp_path / name[1]).write_text(block)
    monkeypatch.chdir(tmp_path)
    code, _, err = ropectl(*arguments)
    if arguments[0] in ("methods", "inspect", "env"):
        assert code == 0 and all(": ropectl " in line for line in err.splitlines()), err
    elif arguments[0] == "report":
        assert code == 2 and "runs/" in err, err
    elif arguments[0] == "patch" or "--dry-run" in arguments:
        assert code == 0, err
    elif arguments[0] == "verify-runtime":
        asked = "No server answers" if "--endpoint" in arguments else "There is no Python"
        assert code == 2 and ("was not converted from" if "--reference" in arguments else asked) in err
    else:
        absent = "SmolLM2" in " ".join(arguments)
        assert code == 2 and ("./my-model cannot be loaded" in err or (absent and "SmolLM2" in err)), err


def test_tree_is_real() -> None:
    tree = (ROOT / "CONTRIBUTING.md").read_text().partition("## What is where")[2]
    folders: dict[str, str] = {}
    for line in tree.split("```")[1].splitlines():
        match = re.match(r"( *)([\w.]+/?(?:[\w.]+/)*)  ", line)
        if not match:
            continue
        indent, name = match[1], match[2]
        parent = folders.get(indent, "") if indent else ""
        assert (ROOT / parent / name).exists(), f"{parent}/{name}"
        if name.endswith("/"):
            folders[indent + "  "] = f"{parent}/{name}".strip("/")


def test_links_lead_somewhere() -> None:
    for name, text in {**PAGES, "README.zh-CN.md": CHINESE}.items():
        folder = ROOT if name.startswith("README") else ROOT / "docs"
        for place, anchor in re.findall(r"\]\((?!https?:)([^)#\s]*)#?([^)]*)\)", text):
            assert not place or (folder / place).exists(), f"{name}: {place}"
            if anchor:
                target = (folder / place).read_text() if place else text
                heads = [
                    re.sub(r"[^\w -]", "", head).strip().lower().replace(" ", "-")
                    for head in re.findall(r"^#+ (.*)$", target, re.M)
                ]
                assert anchor in heads, f"{name}: {place}#{anchor}"


def test_the_chinese_readme_is_whole() -> None:
    """The same commands, outputs, figures and tables; only what is said between them differs."""

    def parts(text: str) -> list[str]:
        blocks = re.findall(r"^```.*?^```$", text, re.DOTALL | re.MULTILINE)
        outputs = [block for block in blocks if block.startswith("```\n")]
        without_notes = re.sub(r" *# .*", "", "\n".join(block for block in blocks if block not in outputs))
        figures = re.findall(r"\]\((docs/images/[^)]*)\)", text)
        return [line for line in without_notes.splitlines() if line.strip()] + outputs + figures

    assert parts(CHINESE) == parts(README)
    assert len(re.findall(r"^#+ ", CHINESE, re.M)) == len(re.findall(r"^#+ ", README, re.M))
    assert len(re.findall(r"^\|", CHINESE, re.M)) == len(re.findall(r"^\|", README, re.M))
    assert len(re.findall(r"[\u4e00-\u9fff]", CHINESE)) > 2000
    assert "位置插值" in CHINESE and "口令\uff08passkey\uff09" in CHINESE, "the usual words"
    assert not re.search("位置内插|密钥|通行密钥", CHINESE)


@pytest.mark.process
def test_the_two_commands_are_scripts() -> None:
    for script in ("quickstart.sh", "test.sh"):
        assert f"bash scripts/{script}" in README
        subprocess.run(["bash", "-n", str(ROOT / "scripts" / script)], check=True)


@pytest.mark.process
def test_a_stale_page_is_noticed(tmp_path: Path) -> None:
    """``--check`` looks at generated pages and at generated parts of written ones, and says which are old."""
    copy = tmp_path / "copy"
    copy.mkdir()
    for part in ("README.md", "README.zh-CN.md", "docs", "scripts"):
        source = ROOT / part
        shutil.copytree(source, copy / part) if source.is_dir() else shutil.copy(source, copy / part)
    for name, old, new in (
        ("methods.md", "##", "#"),
        ("cli.md", "##", "#"),
        ("../README.zh-CN.md", "| [`none`]", "| [`gone`]"),
    ):
        page = copy / "docs" / name
        page.write_text(page.read_text().replace(old, new, 1))
    done = run_python([copy / "scripts" / "gen_docs.py", "--check"])
    assert done.returncode == 1 and "Not up to date: methods.md, cli.md, README.zh-CN.md." in done.stderr


def test_generated_pages_are_complete() -> None:
    from ropectl.cli.app import COMMANDS
    from ropectl.rope.registry import all_methods

    pages = {name: (ROOT / "docs" / f"{name}.md").read_text() for name in ("methods", "cli")}
    assert all(f"\n## {name}\n" in pages["methods"] for name in all_methods())
    assert all(f"\n## {name}\n" in pages["cli"] for name in [command.name for command in COMMANDS])
    for text in pages.values():  # links lead somewhere
        assert set(re.findall(r"\]\(#([\w-]+)\)", text)) <= set(re.findall(r"\n## ([\w-]+)\n", text))


@pytest.mark.process
def test_another_quickstart_is_noticed() -> None:
    """What CI compares the quickstart with is the record that README is rendered from."""
    shown = json.loads((ROOT / "docs" / "records" / "quickstart.json").read_text())

    def check(record: Any) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(ROOT / "scripts" / "check_quickstart.py")]
        return subprocess.run(command, input=json.dumps(record), capture_output=True, text=True)

    assert check(shown).returncode == 0
    other = json.loads(json.dumps(shown))
    other["rows"][1]["perplexity"][2]["perplexity"] *= 1.01
    other["rows"][2]["passkey"][3]["correct"] += 2
    done = check(other)
    assert done.returncode == 1 and done.stderr.count("is shown") + done.stderr.count("are shown") == 2
    other["manifest"]["versions"]["torch"] = "another"
    assert check(other).returncode == 0, "which rounds otherwise"
    other["rows"].pop()
    assert "other methods are compared" in check(other).stderr


def test_one_term_for_what_a_method_is_not_made_for() -> None:
    """Past the length that the method is made for: in messages, tables, figures, docstrings and pages alike."""
    other = re.compile(
        r"past (the |its )?capacity|beyond what \S+ (is|was|were) made|asked to reach|beyond its length", re.I
    )
    files = [
        *(ROOT / "ropectl").rglob("*.py"),
        *(ROOT / "docs").glob("*.md"),
        ROOT / "README.md",
        ROOT / "CHANGELOG.md",
    ]
    assert [path.name for path in files if other.search(path.read_text())] == []


def test_every_extra_is_told_where_its_feature_is() -> None:
    """In the readme or a guide, in the table of messages, and nothing is told that there is not."""
    block = (ROOT / "pyproject.toml").read_text().partition("[project.optional-dependencies]")[2].partition("\n[")[0]
    declared = set(re.findall(r"^(\w+) = \[", block, re.M))
    assert set(EXTRAS.values()) == declared - {"dev"}
    for extra in EXTRAS.values():
        told = [name for name, text in PAGES.items() if name != "cli.md" and f"pip install 'ropectl[{extra}]'" in text]
        assert told, extra
    assert all(
        f"pip install 'ropectl[{extra}]'" in README and f"ropectl[{extra}]" in CHINESE for extra in ("gguf", "peft")
    )
    assert set(re.findall(r"ropectl\\?\[(\w+)\]", "".join(PAGES.values()) + CHINESE)) <= declared
