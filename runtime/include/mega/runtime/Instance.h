// SPDX-License-Identifier: Apache-2.0
//
// A block on a device: what megalith.h offers, for C++. megalith.h documents
// each operation and its errors; here stand only the differences.

#ifndef MEGA_RUNTIME_INSTANCE_H
#define MEGA_RUNTIME_INSTANCE_H

#include "mega/runtime/Manifest.h"
#include "mega/runtime/Status.h"
#include "mega/runtime/TensorMap.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace megalith {

/// Where an instance's machine code comes from.
enum class ImageOrigin {
  Cubin,    ///< the bundle's
  Ptx,      ///< the bundle's PTX, compiled by the driver
  Compiled, ///< the bundle's kernel.cu, compiled by NVRTC now
  Cached,   ///< the same, compiled before
};

/// See megalith_instance_create. Not thread-safe; never throws.
class Instance {
public:
  /// `capacityRows` as megalith_instance_create's cache_capacity_rows.
  static Result<std::unique_ptr<Instance>>
  create(std::shared_ptr<const Bundle> bundle, int device,
         int64_t capacityRows);

  /// Another instance with the same kernel and weights, and its own workspace,
  /// states and position. See megalith_instance_share.
  Result<std::unique_ptr<Instance>> share(int64_t capacityRows) const;

  /// Waits for the context's work, then frees.
  ~Instance();
  Instance(const Instance &) = delete;
  Instance &operator=(const Instance &) = delete;

  /// The bundle the instance was made from.
  const Bundle &bundle() const;

  /// The CUDA device's number.
  int device() const;

  /// CTAs of every launch: the device's SMs, at most the manifest's max_ctas.
  int grid() const;

  /// The device's name, and the arch of the image in use and its origin.
  const std::string &deviceName() const;
  const std::string &arch() const;
  ImageOrigin origin() const;

  /// Binds one tensor. The tensor is shared, not copied: its owner keeps the
  /// bytes until the region is uploaded.
  Status bindTensor(const std::string &name, const Tensor &tensor);

  /// Binds every tensor of `map` named `prefix` + a manifest's tensor name;
  /// shared as by bindTensor. NOT_FOUND if there is none.
  Status bindTensors(const TensorMap &map, const std::string &prefix = "");

  /// Maps a safetensors file and binds it as bindTensors does.
  Status bindSafetensors(const std::string &path,
                         const std::string &prefix = "");

  /// Overwrites packed bytes of the weight arena, for tools that pack by
  /// themselves (Repack.h). Waits for the context's work.
  Status writeWeights(uint64_t offset, const void *data, uint64_t bytes);

  /// Names of tensors not given yet, in the manifest's order.
  std::vector<std::string> missingTensors() const;

  /// Ok, or NOT_READY naming the missing tensors.
  Status weightsReady() const;

  Status setState(const std::string &name, const void *data, uint64_t bytes);
  Status getState(const std::string &name, void *data, uint64_t bytes);
  Status bindState(const std::string &name, uint64_t address, uint64_t bytes);

  /// Every state at once, in the manifest's order, and the position.
  Status bindStates(const void *const *addresses, const size_t *bytes,
                    size_t count, int64_t position);

  /// The state's device address; 0 for a cache without memory.
  Result<uint64_t> stateAddress(const std::string &name) const;

  /// Rows that every cache can hold; INT64_MAX if nothing bounds the position.
  int64_t capacity() const;

  Status setPosition(int64_t position);
  int64_t position() const;

  /// One launch; `input` and `output` are device addresses, `stream` a
  /// CUstream.
  Status step(uint64_t input, uint64_t output, void *stream);
  Status stepHost(const void *input, void *output);

  /// See megalith_wait and megalith_set_watchdog.
  Status wait(void *stream, std::chrono::milliseconds limit);
  void setWatchdog(std::chrono::milliseconds limit);

  /// Overwrites bytes of the workspace, for tools that poison it.
  Status writeWorkspace(uint64_t offset, const void *data, uint64_t bytes);

  Status readProbe(const std::string &name, void *data, uint64_t bytes);
  Status reset();

private:
  struct Impl;
  explicit Instance(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl;
};

} // namespace megalith

#endif
