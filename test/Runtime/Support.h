// SPDX-License-Identifier: Apache-2.0

#ifndef MEGA_TEST_RUNTIME_SUPPORT_H
#define MEGA_TEST_RUNTIME_SUPPORT_H

#include "mega/runtime/Manifest.h"
#include "mega/runtime/Status.h"
#include "mega/runtime/TensorMap.h"

#include <gtest/gtest.h>

#include <string>

/// A folder under the system's temporary one, removed with the object.
class TemporaryFolder {
public:
  TemporaryFolder();
  ~TemporaryFolder();
  /// `name` inside the folder.
  std::string operator/(const std::string &name) const {
    return path + "/" + name;
  }
  std::string path;
};

/// Writes a whole file.
void writeText(const std::string &path, const std::string &text);

/// Replaces the first `from` in `text`, which must have it.
std::string replaced(std::string text, const std::string &from,
                     const std::string &to);

/// The text of Inputs/sample.bundle/manifest.json, a small valid one: dense
/// "norm" [16]; quant "w" [160, 24] group 32; states "S" f32 [2, 3] and cache
/// "kv" bf16 [-1, 8]; probe "ids" i32 [4] at 64 of a workspace of 256; targets
/// sm_80 and sm_90a.
std::string sampleManifest();

/// The smallest file that passes for a cubin, with `marker` in it.
std::string sampleCubin(const std::string &marker);

/// sampleManifest parsed.
megalith::Manifest parsedSample();

/// Values for every tensor of sampleManifest, with seed 1.
megalith::TensorMap sampleTensors();

/// Expects a failure with this code whose message has all these parts.
void expectFailure(const megalith::Status &status, megalith_status code,
                   std::initializer_list<const char *> parts);

/// Expects success; shows the message otherwise.
#define EXPECT_OK(expression)                                                  \
  do {                                                                         \
    ::megalith::Status okStatus = (expression);                                \
    EXPECT_TRUE(okStatus.ok()) << okStatus.message();                          \
  } while (false)

#endif
