// SPDX-License-Identifier: Apache-2.0
//
// Named host tensors: what a checkpoint file holds, what RandomInit makes and
// what binding takes.

#ifndef MEGA_RUNTIME_TENSORMAP_H
#define MEGA_RUNTIME_TENSORMAP_H

#include "mega/runtime/DType.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace megalith {

/// A dense row-major host tensor. Cheap to copy: copies share the bytes. The
/// bytes need not be aligned to the element size (a mapped file's may not be).
struct Tensor {
  DType dtype = DType::U8;
  std::vector<int64_t> shape;
  /// First byte; null only if `bytes` is 0.
  const uint8_t *data = nullptr;
  /// tensorBytes(dtype, shape).
  uint64_t bytes = 0;
  /// Keeps `data` alive: an allocation or a mapped file.
  std::shared_ptr<const void> owner;

  /// A tensor with its own bytes, zeroed; write through `*writable`, which
  /// stays valid as long as the tensor. Precondition: the shape has a size.
  static Tensor allocate(DType dtype, std::vector<int64_t> shape,
                         uint8_t **writable);

  /// A tensor with a copy of `source`, tensorBytes(dtype, shape) bytes long.
  static Tensor copyOf(DType dtype, std::vector<int64_t> shape,
                       const void *source);
};

/// Tensors by name, in name order, and a file's free-form metadata.
struct TensorMap {
  std::map<std::string, Tensor> tensors;
  std::map<std::string, std::string> metadata;

  /// The tensor of that name, or null.
  const Tensor *find(const std::string &name) const {
    auto it = tensors.find(name);
    return it == tensors.end() ? nullptr : &it->second;
  }
};

} // namespace megalith

#endif
