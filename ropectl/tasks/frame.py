"""What stands around a task's text: nothing, or the turns of a chat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ropectl.errors import ConfigError

#: Stands for the user's text while a template is applied; no template changes it.
_CONTENT = "ROPECTL-CONTENT"


@dataclass(frozen=True)
class Frame:
    """How a prompt is framed.

    Attributes:
        name: ``raw`` or ``chat``: what records say.
        opening: Text before the task's text.
        closing: Text between the question and the words that open the answer.
    """

    name: str
    opening: str = ""
    closing: str = ""


#: The text alone, ending in the words that open the answer: for base models.
RAW = Frame("raw")


def chat_frame(tokenizer: Any) -> Frame:
    """Returns the frame that the tokenizer's own chat template makes of one user turn.

    The template is applied once, to a stand-in for the text; what it wrote before and behind it is the frame. The
    question ends the user's turn, and the words that open the answer open the assistant's.

    Raises:
        ConfigError: If there is no template, or it does not take one user turn as it is.
    """
    if not getattr(tokenizer, "chat_template", None):
        raise ConfigError(
            "--chat needs a chat template, and this tokenizer has none.",
            "For a base model leave --chat away; its prompts then end in the words that open the answer.",
        )
    turn = [{"role": "user", "content": _CONTENT}]
    try:
        text = tokenizer.apply_chat_template(turn, tokenize=False, add_generation_prompt=True)
    except Exception as error:  # a template is a program of its author's, and raises what it likes
        raise ConfigError(f"The tokenizer's chat template cannot be applied: {error}") from None
    opening, content, closing = text.partition(_CONTENT)
    if not content or _CONTENT in closing:
        raise ConfigError(
            "The tokenizer's chat template does not say a user's text exactly once: no frame can be made."
        )
    return Frame("chat", opening, closing)
