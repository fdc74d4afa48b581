"""The text that a chat template puts around the user's words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ropectl.errors import ConfigError
from ropectl.printable import first_line

#: A placeholder for the user's words while a template is read; no template treats it specially.
_MARKER = "ropectlUserWords"

#: For templates that write the date (Llama 3.1 and later): the same prompt today and tomorrow.
_DATE = "1 Jan 2025"

_HINT = "Leave out --chat: the prompt is then plain text that ends in the beginning of the answer."


@dataclass(frozen=True)
class ChatTurn:
    """A conversation of one user turn, without the words of that turn.

    Attributes:
        before: Text before the user's words, special tokens written out.
        after: Text after them, up to where the assistant begins to speak.
    """

    before: str
    after: str


def chat_turn(tokenizer: Any) -> ChatTurn:
    """Returns what the tokenizer's chat template puts around a single user turn.

    Templates that can begin with a thinking part are asked to leave it out, so that the answer comes at once.

    Raises:
        ConfigError: If there is no template, or it cannot be used.
    """
    if not getattr(tokenizer, "chat_template", None):
        raise ConfigError("chat = true is not possible: this tokenizer has no chat template.", _HINT)
    turn = [{"role": "user", "content": _MARKER}]
    options = {"date_string": _DATE, "enable_thinking": False}
    try:
        text: str = tokenizer.apply_chat_template(turn, tokenize=False, add_generation_prompt=True, **options)
    except Exception as error:  # a template is a program of its own
        raise ConfigError(
            f"chat = true is not possible: the chat template fails with: {first_line(error)}", _HINT
        ) from None
    before, marker, after = text.partition(_MARKER)
    if not marker or _MARKER in after:
        raise ConfigError("chat = true is not possible: the chat template does not show the user's words once.", _HINT)
    return ChatTurn(before, after)


def check_bos(policy: str) -> None:
    """Checks that nothing is asked for about the first token, about which a chat template decides.

    Args:
        policy: The policy for the beginning-of-sequence token.

    Raises:
        ConfigError: If it is not ``auto``.
    """
    if policy != "auto":
        raise ConfigError(
            f"bos = {policy!r} is not possible with --chat: the chat template decides about the first token.",
            "Leave out --bos.",
        )
