// SPDX-License-Identifier: Apache-2.0
//
// A bundle's manifest as checked values. docs/bundle-format.md says what each
// field means; a value of these types satisfies all it demands.

#ifndef MEGA_RUNTIME_MANIFEST_H
#define MEGA_RUNTIME_MANIFEST_H

#include "mega/runtime/DType.h"
#include "mega/runtime/Status.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace megalith {

/// A named tensor of static shape.
struct TensorDesc {
  /// Empty for the block's input and output.
  std::string name;
  DType dtype = DType::U8;
  std::vector<int64_t> shape;
  /// tensorBytes(dtype, shape).
  uint64_t bytes = 0;
};

/// A weight of the block, made of one (dense) or three (quant) tensors.
struct WeightDesc {
  enum class Kind { Dense, Quant };
  std::string name;
  Kind kind = Kind::Dense;
  /// Quant: [inputs, outputs] or [experts, inputs, outputs].
  std::vector<int64_t> shape;
  /// Quant: inputs that share a scale; 32, 64 or a multiple of 128.
  int64_t group = 0;
  /// Dense: the tensor. Quant: codes u8 [.., inputs/2, outputs], scales and
  /// zeros bf16 [.., inputs/group, outputs].
  std::vector<TensorDesc> tensors;

  /// Quant only.
  int64_t experts() const { return shape.size() == 3 ? shape[0] : 1; }
  int64_t inputs() const { return shape[shape.size() - 2]; }
  int64_t outputs() const { return shape.back(); }
};

/// How a region of the weight arena is laid out.
enum class PackLayout { Raw, MmaM16K128, MmaM16K128Pair };

/// A region of the weight arena.
struct RegionDesc {
  PackLayout layout = PackLayout::Raw;
  /// Byte offset in the arena, a multiple of 16.
  uint64_t offset = 0;
  uint64_t bytes = 0;
  /// Indices into Manifest::weights.
  std::vector<size_t> sources;
};

/// A state: fixed, or a cache that grows by one row a step.
struct StateDesc {
  std::string name;
  DType dtype = DType::F32;
  /// shape[0] is -1 for a cache.
  std::vector<int64_t> shape;
  /// Fixed: the state's bytes. Cache: bytes of one row.
  uint64_t unitBytes = 0;

  bool isCache() const { return !shape.empty() && shape[0] == -1; }
};

/// A value that each step leaves in the workspace.
struct ProbeDesc {
  TensorDesc tensor;
  /// Byte offset in the workspace.
  uint64_t offset = 0;
};

/// A cubin or a PTX text of the bundle.
struct TargetDesc {
  /// As in the manifest, such as "sm_90a"; "compute_80" for PTX.
  std::string arch;
  /// A plain file name in the bundle's folder.
  std::string file;
  /// 90 for sm_90a and compute_90.
  int capability = 0;
  /// Whether the arch has the suffix `a` and so runs on this capability only.
  bool exact = false;
};

/// A part of the workspace that lives from launch to launch, such as a barrier's
/// counter. The rest is scratch: a launch uses nothing that an earlier one left.
struct PersistentDesc {
  uint64_t offset = 0;
  uint64_t bytes = 0;
  /// "grid_barrier": one u32 at `offset`, counted as GridBarrier does.
  /// "counters": `count` u32, evenly apart. Other words are for readers.
  std::string kind;
  /// Counters only.
  std::string name;
  uint64_t count = 0;
};

/// A phase of the schedule, for messages.
struct PhaseDesc {
  std::vector<std::string> stages;
};

/// Bytes that one step must move, as the compiler counts them.
struct TrafficDesc {
  uint64_t weights = 0;
  uint64_t state = 0;
  uint64_t cachePerToken = 0;
};

/// The whole manifest.
struct Manifest {
  std::string block;
  /// Entry point in every cubin.
  std::string kernel;
  TensorDesc input;
  TensorDesc output;
  /// Whether the output may lie where the input lies.
  bool inPlace = false;
  std::vector<WeightDesc> weights;
  /// Size of the weight arena.
  uint64_t weightBytes = 0;
  std::vector<RegionDesc> packed;
  std::vector<StateDesc> states;
  uint64_t workspaceBytes = 0;
  std::vector<ProbeDesc> probes;
  int threads = 0;
  /// Dynamic shared memory a CTA.
  int sharedBytes = 0;
  int maxCtas = 0;
  std::vector<TargetDesc> targets;
  /// PTX texts, for devices that no target fits.
  std::vector<TargetDesc> ptx;
  /// Lower-case SHA-256 by file name; files that are not listed are not
  /// checked.
  std::map<std::string, std::string> digests;
  /// Nothing if the manifest does not say what in the workspace persists.
  std::optional<std::vector<PersistentDesc>> persistent;
  /// Informative: empty and nothing if the manifest does not say.
  std::vector<PhaseDesc> phases;
  std::optional<TrafficDesc> traffic;

  /// Whether any state is a cache.
  bool hasCaches() const;

  /// The state's index; nothing for an unknown name.
  std::optional<size_t> findState(const std::string &name) const;
};

/// A folder with a manifest.
struct Bundle {
  std::string directory;
  /// manifest.json as it is in the file.
  std::string text;
  Manifest manifest;
};

/// The file `name` of a bundle's folder, which must be a regular file there, of
/// at most `limit` bytes, with the digest that the manifest gives if it gives
/// one. IO_ERROR, BAD_FORMAT.
Result<std::string> readBundleFile(const Bundle &bundle,
                                   const std::string &name, uint64_t limit);

/// Parses manifest JSON; `label` names it in messages. Unknown keys are
/// skipped (they are informative); everything else is checked. BAD_FORMAT;
/// UNSUPPORTED_VERSION for a newer format.
Result<Manifest> parseManifest(const std::string &text,
                               const std::string &label);

/// Reads `directory`/manifest.json. IO_ERROR and the errors of parseManifest.
Result<std::shared_ptr<const Bundle>> loadBundle(const std::string &directory);

} // namespace megalith

#endif
