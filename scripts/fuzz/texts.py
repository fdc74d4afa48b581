"""Kind 3 too: options that are given twice, blank texts and malformed lists."""

from __future__ import annotations

from collections.abc import Iterator

from fuzz.case import Case
from fuzz.options import Given, options_of
from fuzz.templates import TEMPLATES, TRAINED, Template

_BLANK = ("", " ", "\t", "\n", "\u3000")

#: Values that are accepted where an option is given once.
_USUAL = {
    **{"--factor": "4", "--target-length": "512", "--method": "yarn", "--text": "text.txt", "--dtype": "float32"},
    **{
        "--device": "cpu",
        "--attention": "sdpa",
        "--bos": "auto",
        "--format": "json",
        "--out": "o",
        "--config": "c.yaml",
    },
    **{"--protocol": "prefix", "--preset": "yarn", "--key-model": "./model", "--tracker": "tensorboard"},
    **{"--geometry": f"rotary_dim=16,rope_theta=1e4,original_max_position_embeddings={TRAINED}", "--plot": "p.svg"},
    **{
        "--runtime": "vllm",
        "--python": "./python",
        "--packing": "none",
        "--positions": "contiguous",
        "--grid": "depth",
    },
    **{
        "--strategy": "full",
        "--lora-targets": "all",
        "--schedule": "linear",
        "--precision": "fp32",
        "--tuning": "none",
    },
    **{"--save-dtype": "float32", "--activation-checkpointing": "off", "--eval-text": "text.txt", "--layers": "x"},
    **{"--revision": "main", "--figures": "figures", "--finetune": "c.yaml", "--gguf-patch": "m.gguf"},
    **{"--include-path": "model", "--show-prompt": "needle", "--min-accuracy": "0.5", "--used-score": "0.5"},
    **{"--min-score": "0.5", "--beta2": "0.9", "--short-fraction": "0.5", "--passkey-fraction": "0.5"},
    **{"--lora-dropout": "0.5", "--original-length": "128"},
}

_SPECS = (
    *(
        "yarn:factor=4,",
        "yarn:,factor=4",
        "yarn:factor=4,,beta_fast=16",
        "yarn:",
        "yarn:,",
        "yarn:factor=4\n",
        "yarn\r",
    ),
    *("ya\x1brn", "yarn\x07", "yarn:factor=4;beta_fast=16", "yarn:factor", "yarn:=4", "yarn:factor=", ":", ","),
    *("yarn:factor=4,factor=4", "yarn:factor=4 beta_fast=16", "yarn:factor==4", "yarn::factor=4", "yarn:factor=4\n,"),
    *("longrope:long_factor=1::1", "longrope:long_factor=:1", "longrope:long_factor=1:", "longrope:long_factor=@"),
    *("longrope:long_factor=@missing.json", "yarn,pi", "yarn pi", "yarn:factor=\u0664", "YARN", "pi:factor=1_0"),
)
_TASKS = (
    *(
        "needle:",
        "needle:,",
        "multi-key:distractors=3,",
        "multi-key:distractors=3,,",
        "needle\n",
        "nee\x1bdle",
        ":",
        ",",
    ),
    *("multi-key:distractors", "multi-key:distractors=", "multi-key:distractors=3,distractors=3", "needle,multi-key"),
)
_LENGTHS = (
    *(
        "64,",
        ",64",
        "64,,128",
        "64\n",
        "64,\n128",
        "64..",
        "..128",
        "64..128/",
        "64..128/0",
        "64..128/-8",
        ",",
        "64;128",
    ),
    *("64...128", "128..64", "64 128", "64..128..256", "8kk", "8kb", "k", "1e3", "64\x1b", "8 k", "+64", "64.0.0"),
)
_NUMBERS = "rotary_dim=16,rope_theta=1e4,original_max_position_embeddings=128"
_GEOMETRIES = (
    *(f"{_NUMBERS},", f",{_NUMBERS}", _NUMBERS.replace(",", ",,", 1), f"{_NUMBERS}\n", _NUMBERS.replace("=", "==", 1)),
    *(f"{_NUMBERS},rotary_dim=16", f"{_NUMBERS},num_turning=", f"{_NUMBERS},x=1", _NUMBERS.replace("16", "15"), ","),
    *(_NUMBERS.replace("16", "-16"), _NUMBERS.replace("1e4", "0"), _NUMBERS.replace("1e4", "nan"), "rotary_dim", "="),
    *(
        _NUMBERS.replace("128", "1e30"),
        _NUMBERS.replace("128", "0"),
        f"{_NUMBERS},num_turning=99",
        _NUMBERS.replace("16", "1e9"),
    ),
)


def cases() -> Iterator[Case]:
    """Yields the cases of this kind that come from the options themselves."""
    for each in _main_templates():
        for more in (("--no-such-option",), ("--no-such-option=1",), ("--format", "xml"), ("one", "two", "-x")):
            yield each.case(3, f"{' '.join(more)}", more=more)
        for option in options_of(each.command):
            yield from _blank(each, option)
            yield from _doubled(each, option)
            yield from _malformed(each, option)


def _main_templates() -> list[Template]:
    """One template for each command, and for ``methods`` both."""
    return [each for each in TEMPLATES if "--dry-run" not in each.args]


def _blank(each: Template, option: Given) -> Iterator[Case]:
    """Yields blank texts where a value belongs."""
    for text in _BLANK:
        if option.flag:
            yield each.case(3, f"{option.flag} {text!r}", more=(option.flag, text), mentions=option.said)
        elif option.name in ("model", "runs"):
            place = "./model" if "./model" in each.args else "record.json" if "record.json" in each.args else "yarn"
            yield each.case(3, f"{option.name} {text!r}", swap={place: text})
            if option.is_list:
                yield each.case(3, f"a further {option.name} {text!r}", more=(text,))


def _doubled(each: Template, option: Given) -> Iterator[Case]:
    """Yields an option of which only the last would count."""
    if option.is_list or not option.flag:
        return
    value = _USUAL.get(option.flag, "16")
    given = 1 if any(spelling in each.args for spelling in option.spellings) else 2
    said = (*option.said, "twice|once|times|again|repeated")
    yield each.case(3, f"{option.flag} is given twice", more=(option.flag, value) * given, mentions=said)


def _malformed(each: Template, option: Given) -> Iterator[Case]:
    """Yields lists with doubled and trailing commas, line breaks and the like."""
    texts: tuple[str, ...] = ()
    if option.flag == "--method":
        texts = _SPECS
    elif option.flag in ("--task", "--show-prompt") and each.command == "eval-tasks":
        texts = _TASKS
    elif option.flag == "--geometry":
        texts = _GEOMETRIES
    elif option.is_length:
        texts = _LENGTHS if option.is_list else ("64\n", "64,", "64,128", "64..128", "6\x1b4", "8 k", "1e3", "+64")
    for text in texts:
        yield each.case(3, f"{option.flag} {text!r}", more=(option.flag, text))
