#!/usr/bin/env bash
# Installs ropectl with its development tools into .venv and runs the default tests.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/environment.sh

install_ropectl "[dev]"
# One thread a worker: the models of the tests are small, and threads only wait for each other.
OMP_NUM_THREADS=1 .venv/bin/python -m pytest -n 2 --dist loadfile "$@"
