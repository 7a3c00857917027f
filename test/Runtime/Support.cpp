// SPDX-License-Identifier: Apache-2.0

#include "Support.h"

#include "mega/runtime/RandomInit.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

using namespace megalith;

TemporaryFolder::TemporaryFolder() {
  std::string pattern =
      (std::filesystem::temp_directory_path() / "megalith-XXXXXX").string();
  if (!::mkdtemp(pattern.data()))
    std::abort();
  path = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

void writeText(const std::string &path, const std::string &text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  ASSERT_TRUE(file.flush().good()) << path;
}

std::string replaced(std::string text, const std::string &from,
                     const std::string &to) {
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

std::string sampleManifest() {
  // Units: 2 tiles x 2 slices, 1024 + 64 * 4 bytes each.
  return R"({
  "format": "megalith-bundle", "version": 1, "compiler": "test",
  "block": "sample", "kernel": "megalith_sample",
  "input":  {"dtype": "bf16", "shape": [16]},
  "output": {"dtype": "bf16", "shape": [16]},
  "weights": [
    {"name": "norm", "kind": "dense", "shape": [16],
     "tensors": [{"name": "norm", "dtype": "bf16", "shape": [16]}]},
    {"name": "w", "kind": "quant", "shape": [160, 24], "group": 32,
     "tensors": [{"name": "w.w_q", "dtype": "u8", "shape": [80, 24]},
                 {"name": "w.scales", "dtype": "bf16", "shape": [5, 24]},
                 {"name": "w.zeros", "dtype": "bf16", "shape": [5, 24]}]}
  ],
  "weight_bytes": 5152,
  "packed": [
    {"layout": "raw", "offset": 0, "bytes": 32, "sources": ["norm"]},
    {"layout": "mma_m16k128", "offset": 32, "bytes": 5120, "sources": ["w"]}
  ],
  "states": [{"name": "S", "dtype": "f32", "shape": [2, 3]},
             {"name": "kv", "dtype": "bf16", "shape": [-1, 8]}],
  "in_place": true,
  "workspace": {"bytes": 256},
  "probes": [{"name": "ids", "dtype": "i32", "shape": [4], "offset": 64}],
  "relaxations": [],
  "launch": {"threads": 512, "shared_bytes": 100000, "max_ctas": 100},
  "schedule": {},
  "targets": [{"arch": "sm_80", "file": "kernel.sm_80.cubin"},
              {"arch": "sm_90a", "file": "kernel.sm_90a.cubin"}]
})";
}

Manifest parsedSample() {
  Result<Manifest> manifest = parseManifest(sampleManifest(), "sample");
  EXPECT_OK(manifest.status());
  return *manifest;
}

TensorMap sampleTensors() {
  Result<TensorMap> map = randomWeights(parsedSample(), 1);
  EXPECT_OK(map.status());
  return *map;
}

void expectFailure(const Status &status, megalith_status code,
                   std::initializer_list<const char *> parts) {
  EXPECT_EQ(status.code(), code) << status.message();
  for (const char *part : parts)
    EXPECT_NE(status.message().find(part), std::string::npos)
        << "no '" << part << "' in: " << status.message();
}
