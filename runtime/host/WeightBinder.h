// SPDX-License-Identifier: Apache-2.0
//
// Collects checkpoint tensors and, when all sources of a region are there,
// packs it and hands it on. Knows no device.

#ifndef MEGA_RUNTIME_HOST_WEIGHTBINDER_H
#define MEGA_RUNTIME_HOST_WEIGHTBINDER_H

#include "mega/runtime/Manifest.h"
#include "mega/runtime/TensorMap.h"

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace megalith {

/// Throws Error (NOT_FOUND, MISMATCH, INVALID_ARGUMENT).
class WeightBinder {
public:
  /// Receives packed bytes for [offset, offset + bytes) of the arena; may
  /// throw.
  using Upload =
      std::function<void(uint64_t offset, const uint8_t *data, uint64_t bytes)>;

  /// `manifest` must outlive the binder.
  explicit WeightBinder(const Manifest &manifest);

  /// A tensor under the manifest's name.
  using NamedTensor = std::pair<std::string, Tensor>;

  /// Gives tensors, and uploads every region that they complete. All are
  /// checked before the first upload; if anything throws, none counts as
  /// given. Owners of tensors are released once their regions are uploaded.
  void bind(const std::vector<NamedTensor> &tensors, const Upload &upload);

  /// Whether the manifest has a tensor of that name.
  bool wants(const std::string &name) const;

  /// Names not given yet, in the manifest's order.
  std::vector<std::string> missing() const;

  /// Whether every region is uploaded; constant time.
  bool ready() const { return regionsLeft == 0; }

  /// Throws NOT_READY, listing missing tensors, unless ready.
  void expectReady() const;

private:
  /// Where a tensor belongs: weights[weight].tensors[index].
  struct Place {
    size_t weight;
    size_t index;
  };
  using Staged = std::map<std::string, Tensor>;

  void validate(const std::string &name, const Tensor &tensor) const;
  bool complete(const RegionDesc &region, const Staged &staged) const;
  void pack(const RegionDesc &region, const Staged &staged,
            const Upload &upload) const;

  const Manifest &manifest;
  std::map<std::string, Place> places;
  /// Given tensors that some region still needs.
  Staged staged;
  /// By weight, then tensor: whether it was given.
  std::vector<std::vector<bool>> given;
  std::vector<bool> uploaded;
  size_t regionsLeft;
};

} // namespace megalith

#endif
