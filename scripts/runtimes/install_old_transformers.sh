#!/usr/bin/env bash
# Installs old versions of transformers side by side, each with the libraries of its time, for the collection of
# what they compute and for the slow tests that run them again. torch is that of the Python in use.
#
#   scripts/runtimes/install_old_transformers.sh DIR
#   PYTHONPATH=. python scripts/runtimes/collect_transformers.py DIR
#   ROPECTL_OLD_TRANSFORMERS=DIR python -m pytest -m slow tests/slow/test_old_transformers.py
set -euo pipefail

directory=${1:?usage: $0 DIR}
python=${PYTHON:-python}

for version in 4.44.2 4.48.3 4.51.3 4.53.3 4.55.4 4.57.6 5.0.0; do
  target=$directory/tf$version
  if [ ! -d "$target/transformers" ] || [ ! -d "$target/tokenizers" ]; then
    rm -rf "$target"
    "$python" -m pip install --quiet --no-warn-conflicts --target "$target" "transformers==$version"
  fi
  PYTHONPATH=$target "$python" -c "
import transformers
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding
assert transformers.__version__ == '$version', transformers.__version__
print('transformers', transformers.__version__, 'imports')"
done
