# Sourced by the other scripts: makes .venv beside the repository's files and installs ropectl into it.
# usage: install_ropectl EXTRAS   (such as "" or "[dev]")

install_ropectl() {
  local python="${PYTHON:-python3}"
  if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
    echo "ropectl needs Python 3.10 or newer; '$python' is not. Name another: PYTHON=python3.12 $0" >&2
    exit 2
  fi
  [ -x .venv/bin/python ] || "$python" -m venv .venv
  echo "Installing ropectl$1 into .venv (the first time takes a few minutes) ..." >&2
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --constraint scripts/constraints.txt --editable ".$1"
}
