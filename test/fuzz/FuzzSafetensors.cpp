// SPDX-License-Identifier: Apache-2.0
//
// A checkpoint: its header, and every byte that it says a tensor has.

#include "mega/runtime/Safetensors.h"

#include <cstdint>

using namespace megalith;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Result<TensorMap> map = parseSafetensors("file", nullptr, data, size);
  if (!map)
    return 0;
  volatile uint8_t sink = 0;
  for (const auto &[name, tensor] : map->tensors)
    for (uint64_t i = 0; i < tensor.bytes; ++i)
      sink = tensor.data[i];
  (void)sink;
  return 0;
}
