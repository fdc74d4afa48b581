"""Seconds and peak memory of patching GGUF files of several sizes, beside copying the same file with ``cp``.

The files are synthetic: one tensor of zeros of the wanted size. Each run is a fresh process.

    python scripts/bench/gguf_patch.py --gigabytes 0.1,1.5
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PATCH = """
import resource, sys
from pathlib import Path
from ropectl.checkpoint.gguf_patch import patch_gguf
from ropectl.rope.geometry import RopeGeometry
from ropectl.rope.registry import parse_method
method = parse_method("ntk-by-parts:factor=4")
patch_gguf(Path(sys.argv[1]), Path(sys.argv[2]), method, RopeGeometry(64, 1e5, 8192))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""


def synthetic(path: Path, num_bytes: int) -> None:
    """A Llama file whose one tensor takes ``num_bytes``."""
    import gguf
    import numpy as np

    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(8192)
    writer.add_embedding_length(576)
    writer.add_head_count(9)
    writer.add_rope_freq_base(1e5)
    writer.add_rope_dimension_count(64)
    writer.add_token_list([f"token{i}" for i in range(50_000)])
    writer.add_tensor_info("token_embd.weight", (num_bytes // 4,), np.dtype(np.float32), num_bytes)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    writer.close()
    with path.open("ab") as file:
        block = bytes(1 << 24)
        file.write(bytes(-file.tell() % 32))
        for start in range(0, num_bytes, len(block)):
            file.write(block[: num_bytes - start])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gigabytes", default="0.1,1.5", help="sizes, joined by commas")
    for size in map(float, parser.parse_args().gigabytes.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            source, out = Path(folder) / "source.gguf", Path(folder) / "out.gguf"
            synthetic(source, int(size * 2**30) // 4 * 4)
            started = time.perf_counter()
            subprocess.run(["cp", source, Path(folder) / "copy.gguf"], check=True)
            copied = time.perf_counter() - started
            (Path(folder) / "copy.gguf").unlink()
            started = time.perf_counter()
            run = subprocess.run([sys.executable, "-c", PATCH, source, out], check=True, capture_output=True, text=True)
            patched = time.perf_counter() - started
            print(
                f"{size:g} GiB: patch {patched:.1f} s (cp {copied:.1f} s), peak memory {float(run.stdout):.0f} MiB",
                flush=True,
            )


if __name__ == "__main__":
    main()
