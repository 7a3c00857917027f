# SPDX-License-Identifier: Apache-2.0
"""safetensors.torch.load_file, for machines without it."""

import json
import struct

import torch

_DTYPES = {"BF16": torch.bfloat16, "F32": torch.float32, "U8": torch.uint8,
           "I32": torch.int32}


def load_file(path):
    with open(path, "rb") as file:
        header = json.loads(file.read(struct.unpack("<Q", file.read(8))[0]))
        data = file.read()
    found = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        found[name] = torch.frombuffer(
            bytearray(data[begin:end]), dtype=_DTYPES[entry["dtype"]]
        ).view(entry["shape"])
    return found
