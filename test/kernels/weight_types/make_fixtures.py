"""make_fixtures.py GGUF_PY: writes NAME.stored and NAME.floats for each weight type beside this script.

GGUF_PY is the folder gguf-py of a llama.cpp checkout; its dequantize() makes the floats. Each tensor has 2 rows of 256 values: random
codes, with scales that include negative, zero and subnormal ones.
"""

import pathlib
import sys

import numpy

sys.path.insert(0, sys.argv[1])
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType  # noqa: E402
from gguf.quants import dequantize  # noqa: E402

ROWS, COLUMNS = 2, 256

# Byte offsets of the 16-bit float scales in a block.
HALVES = {
    "F16": [0], "Q8_0": [0], "Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q2_K": [80, 82], "Q3_K": [108],
    "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208], "IQ4_NL": [0], "IQ4_XS": [0],
}


def stored_tensor(name, random):
    values, size = GGML_QUANT_SIZES[GGMLQuantizationType[name]]
    blocks = random.integers(0, 256, (ROWS * COLUMNS // values, size), dtype=numpy.uint8)
    if name in ("F32", "BF16"):
        floats = random.standard_normal((ROWS, COLUMNS)).astype(numpy.float32).view(numpy.uint32)
        stored = floats if name == "F32" else (floats >> 16).astype(numpy.uint16)
        return stored.view(numpy.uint8).reshape(ROWS, -1)
    for offset in HALVES.get(name, []):
        scales = (random.standard_normal(len(blocks)) * 2.0 ** random.integers(-24, 4, len(blocks))).astype(numpy.float16)
        blocks[:, offset:offset + 2] = scales.view(numpy.uint8).reshape(-1, 2)
    if name == "MXFP4":  # exponents; 0 and 1 give subnormal scales
        blocks[:, 0] = [0, 1, 2, 3, 64, 100, 120, 124, 126, 127, 128, 130, 140, 160, 200, 240]
    return blocks.reshape(ROWS, -1)


def main():
    folder = pathlib.Path(__file__).parent
    random = numpy.random.default_rng(1)
    for name in ["F32", "F16", "BF16", "MXFP4", *[key for key in HALVES if key != "F16"]]:
        stored = stored_tensor(name, random)
        floats = dequantize(stored, GGMLQuantizationType[name]).astype(numpy.float32)
        assert floats.shape == (ROWS, COLUMNS) and numpy.isfinite(floats).all(), name
        (folder / f"{name}.stored").write_bytes(stored.tobytes())
        (folder / f"{name}.floats").write_bytes(floats.tobytes())


main()
