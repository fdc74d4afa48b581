"""A quantized GGUF file rewritten in float32, so that two runtimes hold exactly the same weights, or in another type.

llama.cpp multiplies quantized weights with quantized activations; transformers unpacks the same weights to
float32. On the rewritten file both compute in float32, and what differs is the runtime and not the rounding.

    python scripts/runtimes/make_f32_gguf.py MODEL.Q4_1.gguf MODEL.f32.gguf [F32|F16|BF16|Q8_0|Q4_0|Q4_1]

Needs the package gguf.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from gguf import GGMLQuantizationType, GGUFReader, GGUFValueType, GGUFWriter, LlamaFileType
from gguf.quants import dequantize, quant_shape_to_byte_shape, quantize

#: llama.cpp's names for files whose matrices are of one type.
FILE_TYPES = {
    "F32": LlamaFileType.ALL_F32, "F16": LlamaFileType.MOSTLY_F16, "BF16": LlamaFileType.MOSTLY_BF16,
    "Q8_0": LlamaFileType.MOSTLY_Q8_0, "Q4_0": LlamaFileType.MOSTLY_Q4_0, "Q4_1": LlamaFileType.MOSTLY_Q4_1,
}  # fmt: skip


def make_typed(source: Path, out: Path, name: str = "F32") -> None:
    """Writes ``source`` to ``out`` with every matrix in one type, vectors in float32 and all keys as they are."""
    wanted = GGMLQuantizationType[name]
    reader = GGUFReader(source)
    writer = GGUFWriter(out, reader.fields["general.architecture"].contents())
    for name, field in reader.fields.items():
        if name.startswith("GGUF.") or name in ("general.architecture", "general.quantization_version"):
            continue
        kind, inner = field.types[0], field.types[-1] if field.types[0] == GGUFValueType.ARRAY else None
        value = int(FILE_TYPES[wanted.name]) if name == "general.file_type" else field.contents()
        writer.add_key_value(name, value, kind, inner)
    for tensor in reader.tensors:
        shape, kind = tuple(int(size) for size in reversed(tensor.shape)), _kind(tensor, wanted)
        bytes_ = quant_shape_to_byte_shape(shape, kind)
        is_plain = kind == GGMLQuantizationType.F32
        writer.add_tensor_info(
            tensor.name, shape if is_plain else bytes_, np.dtype(np.float32 if is_plain else np.uint8),
            int(np.prod(bytes_)), None if is_plain else kind,
        )  # fmt: skip
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    for tensor in reader.tensors:  # one at a time, so that memory holds one
        values = np.ascontiguousarray(
            dequantize(tensor.data, GGMLQuantizationType(tensor.tensor_type)), dtype=np.float32
        )
        writer.write_tensor_data(quantize(values, _kind(tensor, wanted)))
    writer.close()


def _kind(tensor: Any, wanted: GGMLQuantizationType) -> GGMLQuantizationType:
    if len(tensor.shape) < 2:
        return GGMLQuantizationType.F32
    is_fine = tensor.name in ("token_embd.weight", "output.weight")  # which llama.cpp's own quantizer keeps finer, too
    return GGMLQuantizationType.Q8_0 if is_fine and wanted.name.startswith("Q4") else wanted


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("type", nargs="?", default="F32", choices=FILE_TYPES)
    arguments = parser.parse_args()
    make_typed(arguments.source, arguments.out, arguments.type)
