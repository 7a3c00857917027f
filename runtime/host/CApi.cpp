// SPDX-License-Identifier: Apache-2.0
//
// megalith.h over the C++ classes: handles, null checks, the last error.

#include "mega/runtime/megalith.h"

#include "Error.h"
#include "mega/runtime/Instance.h"
#include "mega/runtime/Manifest.h"

#include "mega/abi/Kernel.h"

using namespace megalith;

struct megalith_bundle {
  std::shared_ptr<const Bundle> bundle;
};

struct megalith_instance {
  std::unique_ptr<Instance> instance;
};

namespace {

thread_local std::string lastError;

/// Keeps a failure's message and returns its code.
megalith_status report(const Status &status) noexcept {
  if (status.ok())
    return MEGALITH_OK;
  try {
    lastError = status.message();
  } catch (...) {
    lastError.clear();
  }
  return status.code();
}

/// Runs `body`, which returns nothing and may throw Error.
template <typename Body> megalith_status call(Body &&body) noexcept {
  return report(guard(std::forward<Body>(body)));
}

/// Throws INVALID_ARGUMENT if the argument called `name` is null.
void expectNotNull(const void *argument, const char *name) {
  if (!argument)
    fail(MEGALITH_INVALID_ARGUMENT, "argument {} is null", name);
}

DType fromC(megalith_dtype dtype) {
  if (dtype < MEGALITH_U8 || dtype > MEGALITH_F32)
    fail(MEGALITH_INVALID_ARGUMENT, "unknown dtype {}", int(dtype));
  return DType(dtype);
}
static_assert(int(DType::U8) == MEGALITH_U8 &&
              int(DType::I32) == MEGALITH_I32 &&
              int(DType::BF16) == MEGALITH_BF16 &&
              int(DType::F32) == MEGALITH_F32);

void fillInfo(megalith_tensor_info &info, const std::string &name, DType dtype,
              const std::vector<int64_t> &shape) {
  info = megalith_tensor_info{};
  info.name = name.c_str();
  info.dtype = megalith_dtype(dtype);
  info.rank = int32_t(shape.size());
  for (size_t i = 0; i < shape.size(); ++i)
    info.shape[i] = shape[i];
}

void fillInfo(megalith_tensor_info &info, const TensorDesc &tensor) {
  fillInfo(info, tensor.name, tensor.dtype, tensor.shape);
}

/// Throws NOT_FOUND unless index < count.
void expectIndex(size_t index, size_t count, const char *what) {
  if (index >= count)
    fail(MEGALITH_NOT_FOUND, "no {} {}: the bundle has {}", what, index, count);
}

const Manifest &manifestOf(const megalith_bundle *bundle) {
  expectNotNull(bundle, "bundle");
  return bundle->bundle->manifest;
}

Instance &instanceOf(megalith_instance *instance) {
  expectNotNull(instance, "instance");
  return *instance->instance;
}

/// A name argument.
std::string nameOf(const char *name) {
  expectNotNull(name, "name");
  return name;
}

/// The caller's tensor where it lies. INVALID_ARGUMENT if it cannot be one:
/// checked before anything reads it.
Tensor borrow(const std::string &name, const megalith_weight &weight) {
  expectNotNull(weight.data, "data");
  if (weight.rank < 0 || weight.rank > MEGALITH_MAX_RANK)
    fail(MEGALITH_INVALID_ARGUMENT, "tensor {}: rank is {}, expected 0..{}",
         quote(name), weight.rank, int(MEGALITH_MAX_RANK));
  if (weight.rank > 0)
    expectNotNull(weight.shape, "shape");
  Tensor tensor;
  tensor.dtype = fromC(weight.dtype);
  tensor.shape.assign(weight.shape, weight.shape + weight.rank);
  if (tensorBytes(tensor.dtype, tensor.shape) != weight.bytes)
    fail(MEGALITH_INVALID_ARGUMENT,
         "tensor {}: {} bytes do not fit {} of shape {}", quote(name),
         weight.bytes, dtypeName(tensor.dtype), shapeText(tensor.shape));
  tensor.data = static_cast<const uint8_t *>(weight.data);
  tensor.bytes = weight.bytes;
  return tensor;
}

/// Throws NOT_FOUND unless the manifest has the tensor.
void expectTensor(const Manifest &manifest, const std::string &name) {
  for (const WeightDesc &weight : manifest.weights)
    for (const TensorDesc &tensor : weight.tensors)
      if (tensor.name == name)
        return;
  fail(MEGALITH_NOT_FOUND, "block {} has no tensor {}", quote(manifest.block),
       quote(name));
}

} // namespace

static_assert(int(ImageOrigin::Cubin) == MEGALITH_ORIGIN_CUBIN &&
              int(ImageOrigin::Ptx) == MEGALITH_ORIGIN_PTX &&
              int(ImageOrigin::Compiled) == MEGALITH_ORIGIN_COMPILED &&
              int(ImageOrigin::Cached) == MEGALITH_ORIGIN_CACHED);

#define MEGALITH_TEXT_OF(value) #value
#define MEGALITH_TEXT(value) MEGALITH_TEXT_OF(value)

uint32_t megalith_version(void) { return MEGALITH_VERSION; }

const char *megalith_version_string(void) {
  return MEGALITH_TEXT(MEGALITH_VERSION_MAJOR) "." MEGALITH_TEXT(
      MEGALITH_VERSION_MINOR) "." MEGALITH_TEXT(MEGALITH_VERSION_PATCH);
}

uint32_t megalith_bundle_format(void) { return MEGA_ABI_VERSION; }

const char *megalith_status_name(megalith_status status) {
  switch (status) {
#define MEGALITH_NAME(value)                                                   \
  case value:                                                                  \
    return #value;
    MEGALITH_NAME(MEGALITH_OK)
    MEGALITH_NAME(MEGALITH_INVALID_ARGUMENT)
    MEGALITH_NAME(MEGALITH_NOT_FOUND)
    MEGALITH_NAME(MEGALITH_IO_ERROR)
    MEGALITH_NAME(MEGALITH_BAD_FORMAT)
    MEGALITH_NAME(MEGALITH_UNSUPPORTED_VERSION)
    MEGALITH_NAME(MEGALITH_MISMATCH)
    MEGALITH_NAME(MEGALITH_NO_DRIVER)
    MEGALITH_NAME(MEGALITH_NO_KERNEL)
    MEGALITH_NAME(MEGALITH_RESOURCE_LIMIT)
    MEGALITH_NAME(MEGALITH_NOT_READY)
    MEGALITH_NAME(MEGALITH_CAPACITY)
    MEGALITH_NAME(MEGALITH_DRIVER_ERROR)
    MEGALITH_NAME(MEGALITH_INTERNAL)
    MEGALITH_NAME(MEGALITH_TIMEOUT)
#undef MEGALITH_NAME
  }
  return "unknown status";
}

size_t megalith_dtype_bytes(megalith_dtype dtype) {
  if (dtype < MEGALITH_U8 || dtype > MEGALITH_F32)
    return 0;
  return size_t(dtypeBits(DType(dtype)) / 8);
}

const char *megalith_last_error(void) { return lastError.c_str(); }

megalith_status megalith_bundle_load(const char *path,
                                     megalith_bundle **bundle) {
  return call([&] {
    expectNotNull(path, "path");
    expectNotNull(bundle, "bundle");
    *bundle = new megalith_bundle{take(loadBundle(path))};
  });
}

megalith_status megalith_bundle_free(megalith_bundle *bundle) {
  return call([&] { delete bundle; });
}

megalith_status megalith_bundle_manifest(const megalith_bundle *bundle,
                                         const char **text) {
  return call([&] {
    manifestOf(bundle);
    expectNotNull(text, "text");
    *text = bundle->bundle->text.c_str();
  });
}

megalith_status megalith_bundle_block(const megalith_bundle *bundle,
                                      const char **name) {
  return call([&] {
    const Manifest &manifest = manifestOf(bundle);
    expectNotNull(name, "name");
    *name = manifest.block.c_str();
  });
}

megalith_status megalith_bundle_input(const megalith_bundle *bundle,
                                      megalith_tensor_info *info) {
  return call([&] {
    const Manifest &manifest = manifestOf(bundle);
    expectNotNull(info, "info");
    fillInfo(*info, manifest.input);
  });
}

megalith_status megalith_bundle_output(const megalith_bundle *bundle,
                                       megalith_tensor_info *info) {
  return call([&] {
    const Manifest &manifest = manifestOf(bundle);
    expectNotNull(info, "info");
    fillInfo(*info, manifest.output);
  });
}

megalith_status megalith_bundle_tensor_count(const megalith_bundle *bundle,
                                             size_t *count) {
  return call([&] {
    const Manifest &manifest = manifestOf(bundle);
    expectNotNull(count, "count");
    size_t tensors = 0;
    for (const WeightDesc &weight : manifest.weights)
      tensors += weight.tensors.size();
    *count = tensors;
  });
}

megalith_status megalith_bundle_tensor(const megalith_bundle *bundle,
                                       size_t index,
                                       megalith_tensor_info *info) {
  return call([&] {
    const Manifest &manifest = manifestOf(bundle);
    expectNotNull(info, "info");
    size_t first = 0;
    for (const WeightDesc &weight : manifest.weights) {
      if (index - first < weight.tensors.size())
        return fillInfo(*info, weight.tensors[index - first]);
      first += weight.tensors.size();
    }
    expectIndex(index, first, "tensor");
  });
}

megalith_status megalith_bundle_state_count(const megalith_bundle *bundle,
                                            size_t *count) {
  return call([&] {
    const Manifest &manifest = manifestOf(bundle);
    expectNotNull(count, "count");
    *count = manifest.states.size();
  });
}

megalith_status megalith_bundle_state(const megalith_bundle *bundle,
                                      size_t index,
                                      megalith_tensor_info *info) {
  return call([&] {
    const Manifest &manifest = manifestOf(bundle);
    expectNotNull(info, "info");
    expectIndex(index, manifest.states.size(), "state");
    const StateDesc &state = manifest.states[index];
    fillInfo(*info, state.name, state.dtype, state.shape);
  });
}

megalith_status megalith_bundle_probe_count(const megalith_bundle *bundle,
                                            size_t *count) {
  return call([&] {
    const Manifest &manifest = manifestOf(bundle);
    expectNotNull(count, "count");
    *count = manifest.probes.size();
  });
}

megalith_status megalith_bundle_probe(const megalith_bundle *bundle,
                                      size_t index,
                                      megalith_tensor_info *info) {
  return call([&] {
    const Manifest &manifest = manifestOf(bundle);
    expectNotNull(info, "info");
    expectIndex(index, manifest.probes.size(), "probe");
    fillInfo(*info, manifest.probes[index].tensor);
  });
}

megalith_status megalith_instance_create(const megalith_bundle *bundle,
                                         int device,
                                         int64_t cache_capacity_rows,
                                         megalith_instance **instance) {
  return call([&] {
    manifestOf(bundle);
    expectNotNull(instance, "instance");
    *instance = new megalith_instance{
        take(Instance::create(bundle->bundle, device, cache_capacity_rows))};
  });
}

megalith_status megalith_instance_share(const megalith_instance *instance,
                                        int64_t cache_capacity_rows,
                                        megalith_instance **shared) {
  return call([&] {
    expectNotNull(instance, "instance");
    expectNotNull(shared, "shared");
    *shared = new megalith_instance{
        take(instance->instance->share(cache_capacity_rows))};
  });
}

megalith_status megalith_instance_get_info(const megalith_instance *instance,
                                           megalith_instance_info *info) {
  return call([&] {
    expectNotNull(instance, "instance");
    expectNotNull(info, "info");
    const Instance &source = *instance->instance;
    const Manifest &manifest = source.bundle().manifest;
    info->device_name = source.deviceName().c_str();
    info->arch = source.arch().c_str();
    info->device = source.device();
    info->origin = megalith_origin(source.origin());
    info->ctas = source.grid();
    info->threads = manifest.threads;
    info->shared_bytes = manifest.sharedBytes;
  });
}

megalith_status megalith_instance_destroy(megalith_instance *instance) {
  return call([&] { delete instance; });
}

megalith_status megalith_bind_weight(megalith_instance *instance,
                                     const char *tensor, megalith_dtype dtype,
                                     int32_t rank, const int64_t *shape,
                                     const void *data, size_t bytes) {
  return call([&] {
    Instance &target = instanceOf(instance);
    std::string name = nameOf(tensor);
    Tensor borrowed = borrow(name, {tensor, data, bytes, shape, rank, dtype});
    check(target.bindTensor(
        name, Tensor::copyOf(borrowed.dtype, borrowed.shape, data)));
  });
}

megalith_status megalith_bind_weights(megalith_instance *instance,
                                      const megalith_weight *weights,
                                      size_t count) {
  return call([&] {
    Instance &target = instanceOf(instance);
    if (count != 0)
      expectNotNull(weights, "weights");
    TensorMap map;
    for (size_t i = 0; i < count; ++i) {
      std::string name = nameOf(weights[i].name);
      expectTensor(target.bundle().manifest, name);
      if (!map.tensors.emplace(name, borrow(name, weights[i])).second)
        fail(MEGALITH_INVALID_ARGUMENT, "tensor {} is given twice",
             quote(name));
    }
    // What is incomplete afterwards is kept, and then it must be ours.
    bool complete = true;
    for (const std::string &name : target.missingTensors())
      complete = complete && map.find(name);
    if (!complete)
      for (auto &[name, tensor] : map.tensors)
        tensor = Tensor::copyOf(tensor.dtype, tensor.shape, tensor.data);
    if (count != 0)
      check(target.bindTensors(map));
  });
}

megalith_status megalith_bind_safetensors(megalith_instance *instance,
                                          const char *path,
                                          const char *prefix) {
  return call([&] {
    Instance &target = instanceOf(instance);
    expectNotNull(path, "path");
    check(target.bindSafetensors(path, prefix ? prefix : ""));
  });
}

megalith_status megalith_weights_ready(megalith_instance *instance) {
  return call([&] { check(instanceOf(instance).weightsReady()); });
}

megalith_status megalith_set_state(megalith_instance *instance,
                                   const char *name, const void *data,
                                   size_t bytes) {
  return call(
      [&] { check(instanceOf(instance).setState(nameOf(name), data, bytes)); });
}

megalith_status megalith_get_state(megalith_instance *instance,
                                   const char *name, void *data, size_t bytes) {
  return call(
      [&] { check(instanceOf(instance).getState(nameOf(name), data, bytes)); });
}

megalith_status megalith_bind_state(megalith_instance *instance,
                                    const char *name, void *device_pointer,
                                    size_t bytes) {
  return call([&] {
    check(instanceOf(instance).bindState(
        nameOf(name), reinterpret_cast<uint64_t>(device_pointer), bytes));
  });
}

megalith_status megalith_bind_states(megalith_instance *instance,
                                     void *const *device_pointers,
                                     const size_t *bytes, size_t count,
                                     int64_t position) {
  return call([&] {
    Instance &target = instanceOf(instance);
    if (count != 0) {
      expectNotNull(device_pointers, "device_pointers");
      expectNotNull(bytes, "bytes");
    }
    check(target.bindStates(device_pointers, bytes, count, position));
  });
}

megalith_status megalith_state_pointer(megalith_instance *instance,
                                       const char *name,
                                       void **device_pointer) {
  return call([&] {
    Instance &target = instanceOf(instance);
    std::string state = nameOf(name);
    expectNotNull(device_pointer, "device_pointer");
    *device_pointer =
        reinterpret_cast<void *>(take(target.stateAddress(state)));
  });
}

megalith_status megalith_cache_capacity(megalith_instance *instance,
                                        int64_t *rows) {
  return call([&] {
    Instance &target = instanceOf(instance);
    expectNotNull(rows, "rows");
    *rows = target.capacity();
  });
}

megalith_status megalith_set_position(megalith_instance *instance,
                                      int64_t position) {
  return call([&] { check(instanceOf(instance).setPosition(position)); });
}

megalith_status megalith_get_position(megalith_instance *instance,
                                      int64_t *position) {
  return call([&] {
    Instance &target = instanceOf(instance);
    expectNotNull(position, "position");
    *position = target.position();
  });
}

megalith_status megalith_step(megalith_instance *instance, const void *input,
                              void *output, void *stream) {
  return call([&] {
    check(instanceOf(instance).step(reinterpret_cast<uint64_t>(input),
                                    reinterpret_cast<uint64_t>(output),
                                    stream));
  });
}

megalith_status megalith_step_host(megalith_instance *instance,
                                   const void *input, void *output) {
  return call([&] { check(instanceOf(instance).stepHost(input, output)); });
}

megalith_status megalith_wait(megalith_instance *instance, void *stream,
                              uint32_t milliseconds) {
  return call([&] {
    check(instanceOf(instance).wait(stream,
                                    std::chrono::milliseconds(milliseconds)));
  });
}

megalith_status megalith_set_watchdog(megalith_instance *instance,
                                      uint32_t milliseconds) {
  return call([&] {
    instanceOf(instance).setWatchdog(std::chrono::milliseconds(milliseconds));
  });
}

megalith_status megalith_read_probe(megalith_instance *instance,
                                    const char *name, void *data,
                                    size_t bytes) {
  return call([&] {
    check(instanceOf(instance).readProbe(nameOf(name), data, bytes));
  });
}

megalith_status megalith_reset(megalith_instance *instance) {
  return call([&] { check(instanceOf(instance).reset()); });
}
