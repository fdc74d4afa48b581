"""Kind 3: options that change nothing."""

from __future__ import annotations

from collections.abc import Iterator

from fuzz.case import Case, Expected, Step, changed_json
from fuzz.templates import Template, reading, template

#: Settings that nothing looks at, by template; the second word of each is what a message names.
_IDLE: tuple[tuple[str, str], ...] = (
    ("inspect", "-m none --factor 4"),
    ("inspect", "-m abf:rope_theta=10000"),
    ("inspect", "-m abf:rope_theta=20000 --factor 4"),
    ("inspect", "-m yarn --factor 1"),
    ("inspect", "-m yarn:factor=2 --factor 4"),
    ("inspect", "-m yarn:factor=2 --target-length 512"),
    ("inspect", "--target-length 512"),
    ("inspect", "--factor 4 -m pi -m pi"),
    ("inspect", "-m pi:factor=4 -m pi:factor=4.0"),
    ("inspect", "--layers full_attention"),
    ("inspect", "--revision main"),
    ("inspect", "--self-test -m yarn --factor 4 --seq-len 512"),
    ("methods", "--layers full_attention"),
    ("methods", "--revision main"),
    ("methods NAME", "--target-length 512"),
    ("methods NAME", "--tuning light"),
    ("methods NAME", "--runtime vllm"),
    ("methods NAME", "--original-length 64"),
    ("methods NAME", "--trust-remote-code"),
    ("eval-perplexity", "--factor 4"),
    ("eval-perplexity", "-m none --factor 4"),
    ("eval-perplexity", "-m none --target-length 512"),
    ("eval-perplexity", "--replace"),
    ("eval-perplexity", "--stride 16"),
    ("eval-perplexity", "--short-context 64"),
    ("eval-perplexity", "--key-model ./model"),
    ("eval-perplexity", "--document-tokens 128"),
    ("eval-perplexity", "--tolerance 0.1"),
    ("eval-passkey", "--position 16"),
    ("eval-passkey", "-m none --factor 2"),
    ("eval-passkey", "--grid position --position 16 --depths 3"),
    ("eval-tasks", "--list --length 64"),
    ("eval-tasks", "--list --dry-run"),
    ("eval-tasks", "--show-prompt needle --dry-run"),
    ("eval-tasks", "--task needle --task needle"),
    ("eval-tasks --dry-run", "-o result.json"),
    ("eval-tasks --dry-run", "--min-score 0.5"),
    ("harness", "-m none --factor 2"),
    ("verify-runtime", "--model x"),
    ("verify-runtime", "--api-key-env HOME"),
    ("verify-runtime", "--timeout 5"),
    ("verify-runtime", "--reference ./model"),
    ("compare-methods", "--no-passkey --distractors 2"),
    ("compare-methods", "--no-passkey --min-accuracy 0.5"),
    ("compare-methods", "--factor 2"),
    ("compare-methods", "-m none"),
    ("compare-methods", "-m abf:rope_theta=10000"),
    ("patch", "--freeze-at 512"),
    ("patch", "--compose"),
    ("patch", "--replace"),
    ("patch", "--no-merge"),
    ("patch", "--drop-code"),
    ("patch", "--dtype bfloat16"),
    ("patch", "--layers full_attention"),
    ("patch", "--revision main"),
    ("patch --dry-run", "--verify-logits"),
    ("patch --dry-run", "--freeze-at 64"),
    ("patch --dry-run", "--compose"),
    ("patch --dry-run", "--replace"),
    ("patch --dry-run", "--merge"),
    ("patch --dry-run", "--no-merge"),
    ("finetune", "--freeze-at 512"),
    ("finetune", "--compose"),
    ("finetune", "--replace"),
    ("finetune", "--merge"),
    ("finetune", "--no-merge"),
    ("finetune", "--lora-rank 4"),
    ("finetune", "--lora-alpha 4"),
    ("finetune", "--lora-dropout 0.1"),
    ("finetune", "--lora-targets all"),
    ("finetune", "--train-norms"),
    ("finetune", "--train-embeddings"),
    ("finetune", "--pose-chunks 4"),
    ("finetune", "--early-stop 2"),
    ("finetune", "--eval-documents 2"),
    ("finetune", "--eval-trials 2"),
    ("finetune", "--eval-length 64"),
    ("finetune", "--eval-text text.txt"),
    ("finetune", "--drop-code"),
    ("finetune --dry-run", "--compose"),
    ("finetune --dry-run", "--replace"),
)

#: Addresses of no server; at the last nobody listens.
_ADDRESSES = (
    *("", " ", "localhost:8000", "ftp://localhost", "file:///etc/passwd", "http://", "http://h:x", "http://h:99999"),
    *(
        "http://me:secret@h",
        "http://h/?a=1",
        "http://h#a",
        "http://h\n",
        "http://\u00e9",
        "javascript:1",
        "http://127.0.0.1:9",
    ),
)

_SCALED = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32}


def cases() -> Iterator[Case]:
    """Yields the cases of this kind."""
    for name, words in _IDLE:
        yield _idle(template(name), words)
    yield from _on_scaled_models()
    yield from _servers()


def _idle(each: Template, words: str) -> Case:
    """An option without effect: refused, or done with a note that names it."""
    args = tuple(words.split())
    last = [word.lstrip("-") for word in args if word.startswith("--")]
    mentions = ("|".join(last[-1:] or ["-m", "method", "out", "base"]),)
    return each.case(3, f"{words} changes nothing", more=args, expected=Expected.told, mentions=mentions)


def _on_scaled_models() -> Iterator[Case]:
    """Yields methods that a scaling stands in the way of."""
    scaled: Step = changed_json(
        "model/config.json", lambda config: config.update(rope_scaling=_SCALED), "scaled by yarn"
    )
    for each in reading("config"):
        if "-m" not in each.args and each.command not in ("methods", "verify-runtime"):
            more = ("-m", "pi", "--factor", "2")
            yield each.case(3, "another method on a scaled model", scaled, more=more, mentions=("--replace",))


def _servers() -> Iterator[Case]:
    """Yields servers that cannot be asked."""
    each = template("verify-runtime")
    swap = {"--runtime": "--endpoint", "vllm": "http://127.0.0.1:9"}
    yield each.case(3, "--python with --endpoint", swap=swap, mentions=("python",))
    swap |= {"--python": "--positions", "./python": "8"}
    yield each.case(3, "--runtime with --endpoint", more=("--runtime", "vllm"), swap=swap)
    yield each.case(3, "no such variable", more=("--api-key-env", "NO_SUCH"), swap=swap, mentions=("api-key-env",))
    yield each.case(3, "--reference of a folder", more=("--reference", "./model"), swap=swap, mentions=("reference",))
    for url in _ADDRESSES:
        yield each.case(3, f"--endpoint {url!r}", swap={**swap, "vllm": url})
