// SPDX-License-Identifier: Apache-2.0
//
// megalith.h for C++17: handles free themselves, statuses are exceptions, names
// and shapes are the standard library's. Header only, over the C interface
// alone, so it needs no C++ ABI of the library. megalith.h documents every
// operation; here stand only the differences.

#ifndef MEGA_RUNTIME_MEGALITH_HPP
#define MEGA_RUNTIME_MEGALITH_HPP

#include "mega/runtime/megalith.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

// A namespace of its own: `megalith` is the library's inside.
namespace megalith_api {

/// A status other than MEGALITH_OK, with its message.
class Error : public std::runtime_error {
public:
  explicit Error(megalith_status status)
      : std::runtime_error(megalith_last_error()), code(status) {}
  megalith_status status() const noexcept { return code; }

private:
  megalith_status code;
};

/// Throws unless `status` is MEGALITH_OK.
inline void check(megalith_status status) {
  if (status != MEGALITH_OK)
    throw Error(status);
}

/// A tensor as the bundle describes it.
struct TensorInfo {
  std::string name; ///< "" for the input and the output
  megalith_dtype dtype;
  std::vector<std::int64_t> shape; ///< shape[0] of a cache is -1

  /// Whether it grows by a row a step.
  bool isCache() const { return !shape.empty() && shape[0] < 0; }
  /// All its bytes; those of one row for a cache.
  std::size_t bytes() const {
    std::size_t bytes = megalith_dtype_bytes(dtype);
    for (std::int64_t dim : shape)
      bytes *= dim < 0 ? 1 : std::size_t(dim);
    return bytes;
  }
};

/// A loaded bundle. Cheap to copy: copies share one handle. May be used from
/// any number of threads.
class Bundle {
public:
  explicit Bundle(const std::string &path) {
    megalith_bundle *loaded = nullptr;
    check(megalith_bundle_load(path.c_str(), &loaded));
    handle.reset(loaded, [](megalith_bundle *b) { megalith_bundle_free(b); });
  }

  std::string block() const { return text(megalith_bundle_block); }
  std::string manifest() const { return text(megalith_bundle_manifest); }
  TensorInfo input() const { return one(megalith_bundle_input); }
  TensorInfo output() const { return one(megalith_bundle_output); }
  std::vector<TensorInfo> tensors() const {
    return all(megalith_bundle_tensor_count, megalith_bundle_tensor);
  }
  std::vector<TensorInfo> states() const {
    return all(megalith_bundle_state_count, megalith_bundle_state);
  }
  std::vector<TensorInfo> probes() const {
    return all(megalith_bundle_probe_count, megalith_bundle_probe);
  }

  const megalith_bundle *get() const noexcept { return handle.get(); }

private:
  static TensorInfo convert(const megalith_tensor_info &info) {
    return {info.name, info.dtype, {info.shape, info.shape + info.rank}};
  }
  template <typename Get> std::string text(Get get) const {
    const char *value = nullptr;
    check(get(handle.get(), &value));
    return value;
  }
  template <typename Get> TensorInfo one(Get get) const {
    megalith_tensor_info info;
    check(get(handle.get(), &info));
    return convert(info);
  }
  template <typename Count, typename Get>
  std::vector<TensorInfo> all(Count count, Get get) const {
    std::size_t size = 0;
    check(count(handle.get(), &size));
    std::vector<TensorInfo> list;
    for (std::size_t i = 0; i < size; ++i) {
      megalith_tensor_info info;
      check(get(handle.get(), i, &info));
      list.push_back(convert(info));
    }
    return list;
  }

  std::shared_ptr<megalith_bundle> handle;
};

/// An instance; moves, does not copy. One thread at a time.
class Instance {
public:
  Instance(const Bundle &bundle, int device, std::int64_t cacheRows) {
    megalith_instance *made = nullptr;
    check(megalith_instance_create(bundle.get(), device, cacheRows, &made));
    handle.reset(made);
  }

  /// Another sequence with the same weights.
  Instance share(std::int64_t cacheRows) const {
    megalith_instance *made = nullptr;
    check(megalith_instance_share(handle.get(), cacheRows, &made));
    return Instance(made);
  }

  megalith_instance_info info() const {
    megalith_instance_info info;
    check(megalith_instance_get_info(handle.get(), &info));
    return info;
  }

  void bindSafetensors(const std::string &path,
                       const std::string &prefix = "") {
    check(
        megalith_bind_safetensors(handle.get(), path.c_str(), prefix.c_str()));
  }
  void bindWeight(const std::string &tensor, megalith_dtype dtype,
                  const std::vector<std::int64_t> &shape, const void *data,
                  std::size_t bytes) {
    check(megalith_bind_weight(handle.get(), tensor.c_str(), dtype,
                               std::int32_t(shape.size()), shape.data(), data,
                               bytes));
  }
  void weightsReady() { check(megalith_weights_ready(handle.get())); }

  void setState(const std::string &name, const void *data, std::size_t bytes) {
    check(megalith_set_state(handle.get(), name.c_str(), data, bytes));
  }
  void getState(const std::string &name, void *data, std::size_t bytes) {
    check(megalith_get_state(handle.get(), name.c_str(), data, bytes));
  }
  void bindState(const std::string &name, void *devicePointer,
                 std::size_t bytes) {
    check(
        megalith_bind_state(handle.get(), name.c_str(), devicePointer, bytes));
  }
  /// Pointer and bytes of every state, in the bundle's order.
  void bindStates(const std::vector<std::pair<void *, std::size_t>> &memory,
                  std::int64_t position) {
    std::vector<void *> pointers;
    std::vector<std::size_t> bytes;
    for (const auto &[pointer, size] : memory) {
      pointers.push_back(pointer);
      bytes.push_back(size);
    }
    check(megalith_bind_states(handle.get(), pointers.data(), bytes.data(),
                               bytes.size(), position));
  }
  void *statePointer(const std::string &name) {
    void *pointer = nullptr;
    check(megalith_state_pointer(handle.get(), name.c_str(), &pointer));
    return pointer;
  }

  std::int64_t capacity() {
    std::int64_t rows = 0;
    check(megalith_cache_capacity(handle.get(), &rows));
    return rows;
  }
  std::int64_t position() {
    std::int64_t position = 0;
    check(megalith_get_position(handle.get(), &position));
    return position;
  }
  void setPosition(std::int64_t position) {
    check(megalith_set_position(handle.get(), position));
  }

  /// Device addresses; asynchronous on `stream`.
  void step(const void *input, void *output, void *stream = nullptr) {
    check(megalith_step(handle.get(), input, output, stream));
  }
  /// Host addresses; waits.
  void stepHost(const void *input, void *output) {
    check(megalith_step_host(handle.get(), input, output));
  }
  /// False if the stream is not done in time; then `where`, unless null, says
  /// where the kernel is.
  bool wait(void *stream, std::chrono::milliseconds limit,
            std::string *where = nullptr) {
    megalith_status status =
        megalith_wait(handle.get(), stream, std::uint32_t(limit.count()));
    if (status == MEGALITH_TIMEOUT) {
      if (where)
        *where = megalith_last_error();
      return false;
    }
    check(status);
    return true;
  }
  void setWatchdog(std::chrono::milliseconds limit) {
    check(megalith_set_watchdog(handle.get(), std::uint32_t(limit.count())));
  }

  void readProbe(const std::string &name, void *data, std::size_t bytes) {
    check(megalith_read_probe(handle.get(), name.c_str(), data, bytes));
  }
  void reset() { check(megalith_reset(handle.get())); }

  megalith_instance *get() const noexcept { return handle.get(); }

private:
  struct Destroy {
    void operator()(megalith_instance *instance) const noexcept {
      megalith_instance_destroy(instance);
    }
  };
  explicit Instance(megalith_instance *made) : handle(made) {}
  std::unique_ptr<megalith_instance, Destroy> handle;
};

} // namespace megalith_api

#endif
