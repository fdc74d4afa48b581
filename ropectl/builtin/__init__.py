"""Ships with ropectl, so that it is useful offline: a small trained model and a text corpus."""

from pathlib import Path

#: Folder of the model that ``builtin:tiny`` names.
TINY_MODEL_DIR = Path(__file__).parent / "tiny"
