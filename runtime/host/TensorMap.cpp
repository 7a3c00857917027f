// SPDX-License-Identifier: Apache-2.0

#include "mega/runtime/TensorMap.h"

using namespace megalith;

Tensor Tensor::allocate(DType dtype, std::vector<int64_t> shape,
                        uint8_t **writable) {
  Tensor tensor;
  tensor.dtype = dtype;
  tensor.bytes = tensorBytes(dtype, shape).value();
  tensor.shape = std::move(shape);
  auto bytes = std::make_shared<std::vector<uint8_t>>(tensor.bytes);
  *writable = bytes->data();
  tensor.data = bytes->data();
  tensor.owner = std::move(bytes);
  return tensor;
}

Tensor Tensor::copyOf(DType dtype, std::vector<int64_t> shape,
                      const void *source) {
  uint8_t *writable = nullptr;
  Tensor tensor = allocate(dtype, std::move(shape), &writable);
  if (tensor.bytes != 0)
    std::memcpy(writable, source, tensor.bytes);
  return tensor;
}
