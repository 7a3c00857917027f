// SPDX-License-Identifier: Apache-2.0
//
// What is looked at before the driver gets it.

#include "Cubin.h"
#include "Error.h"
#include "ImageCache.h"

#include <cstdint>
#include <string_view>

using namespace megalith;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  // No copy: a read past the end is seen.
  std::string_view bytes(reinterpret_cast<const char *>(data), size);
  (void)guard([&] { checkCubin(bytes, "image"); });
  (void)guard([&] { checkPtx(bytes, "image"); });
  // An entry is what it was stored as, or nothing.
  size_t half = size / 2;
  std::string_view key = bytes.substr(0, half), image = bytes.substr(half);
  if (!image.empty() && decodeEntry(key, encodeEntry(key, image)) != image)
    __builtin_trap();
  if (decodeEntry("key", bytes) && bytes.find("megalith-image") != 0)
    __builtin_trap();
  return 0;
}
