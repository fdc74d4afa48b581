#!/usr/bin/env bash
# Installs ropectl into .venv and compares all scaling methods on the model that ships with it.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/environment.sh

install_ropectl ""
echo "Comparing every method on builtin:tiny (trained at 512 tokens), factor 4 ..." >&2
.venv/bin/ropectl compare-methods "$@"
