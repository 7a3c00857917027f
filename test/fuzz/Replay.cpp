// SPDX-License-Identifier: Apache-2.0
//
// Runs a fuzz target on files, and on each with bits flipped and its end cut
// off, without a fuzzer: what crashed once must not again.
//   replay FOLDER...

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

namespace fs = std::filesystem;

/// A buffer of exactly that size, so that a sanitizer sees the end.
static void run(std::vector<uint8_t> bytes) {
  bytes.shrink_to_fit();
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

int main(int argc, char **argv) {
  // Enough to meet every field of a seed, few enough for a test.
  constexpr size_t variants = 400;
  size_t files = 0, runs = 0;
  for (int i = 1; i < argc; ++i)
    for (const auto &item : fs::directory_iterator(argv[i])) {
      std::ifstream file(item.path(), std::ios::binary);
      std::vector<uint8_t> bytes((std::istreambuf_iterator<char>(file)), {});
      run(bytes);
      ++files;
      ++runs;
      size_t step = bytes.size() / variants + 1;
      for (size_t at = 0; at < bytes.size(); at += step) {
        std::vector<uint8_t> flipped = bytes;
        flipped[at] ^= uint8_t(1u << (at / step % 8));
        run(flipped);
        run(std::vector<uint8_t>(bytes.begin(), bytes.begin() + at));
        runs += 2;
      }
    }
  std::printf("%zu runs of %zu files\n", runs, files);
  return files == 0;
}
