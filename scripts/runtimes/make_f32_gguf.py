"""A quantized GGUF file rewritten in float32, so that two runtimes hold exactly the same weights.

llama.cpp multiplies quantized weights with quantized activations; transformers unpacks the same weights to
float32. On the rewritten file both compute in float32, and what differs is the runtime and not the rounding.

    python scripts/runtimes/make_f32_gguf.py MODEL.Q4_1.gguf MODEL.f32.gguf      # needs the package gguf
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from gguf import GGMLQuantizationType, GGUFReader, GGUFValueType, GGUFWriter
from gguf.quants import dequantize

#: llama.cpp's number for a file whose weights are all float32.
ALL_F32 = 0


def make_f32(source: Path, out: Path) -> None:
    """Writes ``source`` to ``out`` with every floating-point tensor in float32 and all keys as they are."""
    reader = GGUFReader(source)
    writer = GGUFWriter(out, reader.fields["general.architecture"].contents())
    for name, field in reader.fields.items():
        if name.startswith("GGUF.") or name in ("general.architecture", "general.quantization_version"):
            continue
        kind, inner = field.types[0], field.types[-1] if field.types[0] == GGUFValueType.ARRAY else None
        value = ALL_F32 if name == "general.file_type" else field.contents()
        writer.add_key_value(name, value, kind, inner)
    for tensor in reader.tensors:
        shape = tuple(int(size) for size in reversed(tensor.shape))
        writer.add_tensor_info(tensor.name, shape, np.dtype(np.float32), int(np.prod(shape)) * 4)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    for tensor in reader.tensors:  # one at a time, so that memory holds one
        kind = GGMLQuantizationType(tensor.tensor_type)
        writer.write_tensor_data(np.ascontiguousarray(dequantize(tensor.data, kind), dtype=np.float32))
    writer.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("out", type=Path)
    arguments = parser.parse_args()
    make_f32(arguments.source, arguments.out)
