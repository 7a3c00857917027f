// SPDX-License-Identifier: Apache-2.0

#include "FakeDriver.h"
#include "Support.h"

#include "mega/runtime/Instance.h"
#include "mega/runtime/RandomInit.h"
#include "mega/runtime/Repack.h"
#include "mega/runtime/Safetensors.h"
#include "mega/runtime/megalith.h"

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <thread>

#include <dlfcn.h>

using namespace megalith;

namespace {

/// A bundle of the sample manifest on disk, and a fake device.
class InstanceTest : public ::testing::Test {
protected:
  void SetUp() override { write(sampleManifest()); }

  void write(const std::string &manifest) {
    writeText(folder / "manifest.json", manifest);
    writeText(folder / "kernel.sm_80.cubin", sampleCubin("cubin for sm_80"));
    writeText(folder / "kernel.sm_90a.cubin", sampleCubin("cubin for sm_90a"));
  }

  Result<std::unique_ptr<Instance>> create(int64_t rows = 4, int device = 0) {
    Result<std::shared_ptr<const Bundle>> bundle = loadBundle(folder.path);
    EXPECT_OK(bundle.status());
    return Instance::create(*bundle, device, rows);
  }

  /// An instance with all weights bound.
  std::unique_ptr<Instance> createBound(int64_t rows = 4) {
    auto instance = create(rows);
    EXPECT_OK(instance.status());
    EXPECT_OK((*instance)->bindTensors(sampleTensors()));
    return std::move(*instance);
  }

  FakeDevice &device() { return driver.device; }

  TemporaryFolder folder;
  FakeDriverScope driver;
  alignas(16) uint8_t input[32] = {1, 2, 3};
  alignas(16) uint8_t output[32] = {};
  uint64_t inputAddress = reinterpret_cast<uint64_t>(input);
  uint64_t outputAddress = reinterpret_cast<uint64_t>(output);
};

} // namespace

TEST(Driver, MissingDriverIsAStatus) {
  TemporaryFolder folder;
  writeText(folder / "manifest.json", sampleManifest());
  if (void *library = ::dlopen("libcuda.so.1", RTLD_NOW)) {
    ::dlclose(library);
    GTEST_SKIP() << "this machine has a driver";
  }
  expectFailure(
      Instance::create(*loadBundle(folder.path), 0, 4).status(),
      MEGALITH_NO_DRIVER,
      {"libcuda.so.1 could not be opened", "everything but launching works"});
}

TEST_F(InstanceTest, PicksTheExactKernelAndOneCtaAnSm) {
  auto instance = create();
  ASSERT_TRUE(instance) << instance.status().message();
  EXPECT_EQ((*instance)->arch(), "sm_90a");
  EXPECT_EQ(device().image, "cubin for sm_90a");
  EXPECT_EQ(device().dynamicShared, 100000);
  EXPECT_EQ((*instance)->grid(), 100); // max_ctas
  device().processors = 64;
  EXPECT_EQ((*create())->grid(), 64);
}

TEST_F(InstanceTest, PlainArchRunsOnNewerMinor) {
  device().major = 8;
  device().minor = 9;
  EXPECT_EQ((*create())->arch(), "sm_80");
}

TEST_F(InstanceTest, WrongArch) {
  device().major = 9;
  device().minor = 1;
  expectFailure(create().status(), MEGALITH_NO_KERNEL,
                {"no kernel for device sm_91 (Fake GPU); bundle has: sm_80, "
                 "sm_90a"});
  device().major = 7;
  device().minor = 5;
  expectFailure(create().status(), MEGALITH_NO_KERNEL, {"sm_75"});
}

TEST_F(InstanceTest, DeviceLimits) {
  expectFailure(create(4, 1).status(), MEGALITH_NO_KERNEL,
                {"no device 1: the machine has 1"});
  device().resident = 0;
  expectFailure(create().status(), MEGALITH_RESOURCE_LIMIT,
                {"grid of 100 ctas does not fit", "132 sms"});
  device().resident = 1;
  device().sharedLimit = 101023;
  expectFailure(create().status(), MEGALITH_RESOURCE_LIMIT,
                {"1024 + 100000 bytes", "allows 101023"});
  device().sharedLimit = 101024;
  EXPECT_OK(create().status());
  device().maxThreads = 256;
  expectFailure(create().status(), MEGALITH_RESOURCE_LIMIT,
                {"512 threads", "256"});
  device().maxThreads = 1024;
  device().cooperative = 0;
  expectFailure(create().status(), MEGALITH_NO_KERNEL, {"cooperative"});
}

TEST_F(InstanceTest, CreateErrorsReleaseEverything) {
  device().memoryLimit = 4096; // less than the weights
  expectFailure(create().status(), MEGALITH_RESOURCE_LIMIT,
                {"cuMemAlloc of 5152 bytes for weights"});
  device().memoryLimit = 6000; // the cache is too large
  expectFailure(create(1000).status(), MEGALITH_RESOURCE_LIMIT,
                {"16000 bytes for state 'kv'"});
  expectFailure(create(INT64_MAX).status(), MEGALITH_RESOURCE_LIMIT,
                {"'kv'", "too many"});
  expectFailure(create(-1).status(), MEGALITH_INVALID_ARGUMENT, {"-1 rows"});
  write(replaced(sampleManifest(), "megalith_sample", "other"));
  expectFailure(create().status(), MEGALITH_DRIVER_ERROR,
                {"'other'", "kernel.sm_90a.cubin", "CUDA_ERROR_FAKE (500)"});
  write(replaced(sampleManifest(), "kernel.sm_90a.cubin", "gone"));
  expectFailure(create().status(), MEGALITH_IO_ERROR, {"gone"});
}

TEST_F(InstanceTest, StepIsOneLaunchAndNothingElse) {
  std::unique_ptr<Instance> instance = createBound();
  auto stream = reinterpret_cast<CUstream>(0x1230);
  device().calls.clear();
  EXPECT_OK(instance->step(inputAddress, outputAddress, stream));
  EXPECT_EQ(device().calls["cuLaunchCooperativeKernel"], 1);
  EXPECT_EQ(device().calls["cuCtxPushCurrent"], 1);
  EXPECT_EQ(device().calls["cuCtxPopCurrent"], 1);
  EXPECT_EQ(device().totalCalls(), 3);
  EXPECT_EQ(device().grid, 100u);
  EXPECT_EQ(device().block, 512u);
  EXPECT_EQ(device().shared, 100000u);
  EXPECT_EQ(device().stream, stream);
  EXPECT_EQ(device().header.input, input);
  EXPECT_EQ(device().header.output, output);
  EXPECT_EQ(device().header.position, 0);
  EXPECT_EQ(device().states[0], *instance->stateAddress("S"));
  EXPECT_EQ(device().states[1], *instance->stateAddress("kv"));
  EXPECT_EQ(instance->position(), 1);
  EXPECT_OK(instance->step(inputAddress, outputAddress, stream));
  EXPECT_EQ(device().header.position, 1);
}

TEST_F(InstanceTest, StepRefusals) {
  auto instance = create(2);
  ASSERT_TRUE(instance);
  Instance &i = **instance;
  expectFailure(i.step(inputAddress, outputAddress, nullptr),
                MEGALITH_NOT_READY, {"4 of 4", "'norm', 'w.w_q'"});
  EXPECT_OK(i.bindTensors(sampleTensors()));
  expectFailure(i.step(inputAddress + 8, outputAddress, nullptr),
                MEGALITH_INVALID_ARGUMENT, {"input address", "multiple of 16"});
  expectFailure(i.step(inputAddress, 0, nullptr), MEGALITH_INVALID_ARGUMENT,
                {"output address"});
  device().launchResult = 700;
  expectFailure(i.step(inputAddress, outputAddress, nullptr),
                MEGALITH_DRIVER_ERROR,
                {"cuLaunchCooperativeKernel", "CUDA_ERROR_FAKE (700)"});
  EXPECT_EQ(i.position(), 0);
  device().launchResult = 0;
  EXPECT_OK(i.step(inputAddress, outputAddress, nullptr));
  EXPECT_OK(i.step(inputAddress, outputAddress, nullptr));
  expectFailure(i.step(inputAddress, outputAddress, nullptr), MEGALITH_CAPACITY,
                {"position 2", "capacity of 2 rows"});
  EXPECT_EQ(i.position(), 2);
}

TEST_F(InstanceTest, OutputOverInput) {
  std::unique_ptr<Instance> instance = createBound();
  EXPECT_OK(instance->step(inputAddress, inputAddress, nullptr));
  expectFailure(instance->step(inputAddress, inputAddress + 16, nullptr),
                MEGALITH_INVALID_ARGUMENT, {"output address", "overlaps"});
  write(
      replaced(sampleManifest(), "\"in_place\": true", "\"in_place\": false"));
  instance = createBound();
  expectFailure(instance->step(inputAddress, inputAddress, nullptr),
                MEGALITH_INVALID_ARGUMENT, {"reads its input to the end"});
  EXPECT_EQ(instance->position(), 0);
}

TEST_F(InstanceTest, Position) {
  std::unique_ptr<Instance> instance = createBound(4);
  EXPECT_EQ(instance->capacity(), 4);
  EXPECT_OK(instance->setPosition(4));
  expectFailure(instance->setPosition(5), MEGALITH_CAPACITY,
                {"position 5", "4 rows"});
  expectFailure(instance->setPosition(-1), MEGALITH_INVALID_ARGUMENT, {"-1"});
  EXPECT_EQ(instance->position(), 4);
}

TEST_F(InstanceTest, PositionWithoutCaches) {
  write(replaced(sampleManifest(), "[-1, 8]", "[1, 8]"));
  EXPECT_EQ(createBound(0)->capacity(), INT64_MAX);
  EXPECT_EQ(createBound(3)->capacity(), 3);
  std::unique_ptr<Instance> instance = createBound(0);
  EXPECT_OK(instance->setPosition(INT32_MAX - 1));
  expectFailure(instance->step(inputAddress, outputAddress, nullptr),
                MEGALITH_CAPACITY, {"2147483646"});
}

TEST_F(InstanceTest, BindUploadsPackedWeights) {
  std::unique_ptr<Instance> instance = createBound();
  std::vector<uint8_t> arena(5152);
  EXPECT_OK(packWeights(parsedSample(), sampleTensors(), arena.data()));
  EXPECT_OK(instance->step(inputAddress, outputAddress, nullptr));
  EXPECT_EQ(std::memcmp(device().header.weights, arena.data(), arena.size()),
            0);
}

TEST_F(InstanceTest, BindErrors) {
  auto instance = create();
  ASSERT_TRUE(instance);
  Instance &i = **instance;
  TensorMap map = sampleTensors();
  const Tensor &norm = map.tensors["norm"];
  expectFailure(i.bindTensor("nrom", norm), MEGALITH_NOT_FOUND,
                {"block 'sample' has no tensor 'nrom'"});
  Tensor wrong = norm;
  wrong.shape = {4, 4};
  expectFailure(i.bindTensor("norm", wrong), MEGALITH_MISMATCH,
                {"'norm'", "shape is 4x4, expected 16"});
  wrong = norm;
  wrong.dtype = DType::F16;
  expectFailure(i.bindTensor("norm", wrong), MEGALITH_MISMATCH,
                {"dtype is F16, expected BF16"});
  EXPECT_EQ(i.missingTensors().size(), 4u);
  EXPECT_OK(i.bindTensor("norm", norm));
  expectFailure(i.bindTensor("norm", norm), MEGALITH_INVALID_ARGUMENT,
                {"'norm' is already bound"});

  // Zero points that the packed layout cannot hold.
  for (float zero : {0.5f, -1.0f, 16.0f, NAN}) {
    std::vector<uint16_t> zeros(120, toBf16(3));
    zeros[7] = toBf16(zero);
    Tensor tensor = Tensor::copyOf(DType::BF16, {5, 24}, zeros.data());
    expectFailure(i.bindTensor("w.zeros", tensor), MEGALITH_MISMATCH,
                  {"'w.zeros'", "zero point 7 is", "integer in 0..15"});
  }

  // All or nothing: one bad tensor, and the good ones are not bound either.
  map.tensors.erase("norm");
  TensorMap bad = map;
  bad.tensors["w.scales"].dtype = DType::F16;
  expectFailure(i.bindTensors(bad), MEGALITH_MISMATCH, {"'w.scales'"});
  EXPECT_EQ(i.missingTensors(),
            (std::vector<std::string>{"w.w_q", "w.scales", "w.zeros"}));
  EXPECT_OK(i.bindTensors(map));
  EXPECT_OK(i.weightsReady());
}

TEST_F(InstanceTest, BindSafetensorsInShards) {
  TensorMap all = sampleTensors(), first, second, other;
  first.tensors["model.w.w_q"] = all.tensors["w.w_q"];
  first.tensors["model.embedding"] = all.tensors["norm"];
  second.tensors["model.w.scales"] = all.tensors["w.scales"];
  second.tensors["model.w.zeros"] = all.tensors["w.zeros"];
  second.tensors["model.norm"] = all.tensors["norm"];
  other.tensors["embedding"] = all.tensors["norm"];
  EXPECT_OK(writeSafetensors(folder / "1", first));
  EXPECT_OK(writeSafetensors(folder / "2", second));
  EXPECT_OK(writeSafetensors(folder / "3", other));
  auto instance = create();
  ASSERT_TRUE(instance);
  Instance &i = **instance;
  EXPECT_OK(i.bindSafetensors(folder / "1", "model."));
  expectFailure(i.weightsReady(), MEGALITH_NOT_READY, {"3 of 4"});
  EXPECT_OK(i.bindSafetensors(folder / "2", "model."));
  EXPECT_OK(i.weightsReady());
  expectFailure(i.bindSafetensors(folder / "3"), MEGALITH_NOT_FOUND,
                {"none of the 1 tensors"});
  expectFailure(i.bindSafetensors(folder / "4"), MEGALITH_IO_ERROR, {"/4"});
}

TEST_F(InstanceTest, States) {
  std::unique_ptr<Instance> i = createBound(4);
  float s[6] = {1, 2, 3, 4, 5, 6}, back[6] = {};
  EXPECT_OK(i->setState("S", s, sizeof(s)));
  EXPECT_OK(i->getState("S", back, sizeof(back)));
  EXPECT_EQ(std::memcmp(s, back, sizeof(s)), 0);
  uint16_t rows[40] = {7, 8, 9};
  EXPECT_OK(i->setState("kv", rows, 3 * 16));
  EXPECT_OK(i->setState("kv", rows, 0));
  expectFailure(i->setState("kv", rows, 5 * 16), MEGALITH_CAPACITY,
                {"'kv'", "5 rows", "capacity of 4"});
  expectFailure(i->setState("kv", rows, 17), MEGALITH_INVALID_ARGUMENT,
                {"17 bytes", "rows of 16"});
  expectFailure(i->setState("S", s, 20), MEGALITH_INVALID_ARGUMENT,
                {"'S'", "20 bytes, expected 24"});
  expectFailure(i->getState("T", s, 24), MEGALITH_NOT_FOUND, {"no state 'T'"});
  expectFailure(i->getState("S", nullptr, 24), MEGALITH_INVALID_ARGUMENT,
                {"null"});
}

TEST_F(InstanceTest, CallerOwnedStates) {
  std::unique_ptr<Instance> i = createBound(0);
  uint16_t rows[8] = {};
  expectFailure(i->setState("kv", rows, 16), MEGALITH_NOT_READY,
                {"'kv' has no memory"});
  expectFailure(i->step(inputAddress, outputAddress, nullptr),
                MEGALITH_NOT_READY, {"'kv' has no memory"});
  EXPECT_EQ(*i->stateAddress("kv"), 0u);

  alignas(16) static uint8_t memory[16 * 3 + 5];
  uint64_t address = reinterpret_cast<uint64_t>(memory);
  device().allocations[address] = sizeof(memory);
  expectFailure(i->bindState("kv", address + 2, 48), MEGALITH_INVALID_ARGUMENT,
                {"multiple of 16"});
  expectFailure(i->bindState("kv", address, 15), MEGALITH_INVALID_ARGUMENT,
                {"15 bytes, expected at least 16"});
  EXPECT_OK(i->bindState("kv", address, sizeof(memory)));
  EXPECT_EQ(i->capacity(), 3);
  EXPECT_EQ(*i->stateAddress("kv"), address);
  EXPECT_OK(i->setPosition(2));
  EXPECT_OK(i->step(inputAddress, outputAddress, nullptr));
  EXPECT_EQ(device().states[1], address);
  expectFailure(i->bindState("kv", address, 32), MEGALITH_CAPACITY,
                {"2 rows are fewer than the position, 3"});

  // Nothing is freed when the caller's memory takes the place of the caller's.
  int waits = device().calls["cuCtxSynchronize"];
  EXPECT_OK(i->bindState("kv", address, sizeof(memory)));
  EXPECT_EQ(device().calls["cuCtxSynchronize"], waits);

  size_t allocations = device().allocations.size();
  EXPECT_OK(i->bindState("S", address, 24));
  EXPECT_EQ(device().allocations.size(), allocations - 1);
  EXPECT_GT(device().calls["cuCtxSynchronize"], waits);
  i.reset();
  device().allocations.erase(address);
}

TEST_F(InstanceTest, CallerOwnedStatesAtOnce) {
  std::unique_ptr<Instance> i = createBound(4);
  alignas(16) static uint8_t s[24], cache[16 * 3 + 5];
  device().allocations[reinterpret_cast<uint64_t>(s)] = sizeof(s);
  device().allocations[reinterpret_cast<uint64_t>(cache)] = sizeof(cache);
  uint64_t own = *i->stateAddress("S"), ownCache = *i->stateAddress("kv");
  const void *addresses[] = {s, cache};
  size_t bytes[] = {sizeof(s), sizeof(cache)};
  auto unchanged = [&] {
    EXPECT_EQ(*i->stateAddress("S"), own);
    EXPECT_EQ(*i->stateAddress("kv"), ownCache);
    EXPECT_EQ(i->capacity(), 4);
    EXPECT_EQ(i->position(), 0);
  };
  expectFailure(i->bindStates(addresses, bytes, 1, 0),
                MEGALITH_INVALID_ARGUMENT, {"1 states, expected all 2"});
  expectFailure(i->bindStates(addresses, bytes, 2, -1),
                MEGALITH_INVALID_ARGUMENT, {"position is -1"});
  expectFailure(i->bindStates(addresses, bytes, 2, 4), MEGALITH_CAPACITY,
                {"'kv'", "3 rows are fewer than the position, 4"});
  addresses[1] = cache + 1;
  expectFailure(i->bindStates(addresses, bytes, 2, 0),
                MEGALITH_INVALID_ARGUMENT, {"'kv'", "multiple of 16"});
  addresses[1] = nullptr;
  expectFailure(i->bindStates(addresses, bytes, 2, 0),
                MEGALITH_INVALID_ARGUMENT, {"'kv'", "null"});
  addresses[1] = cache;
  bytes[0] = 23;
  expectFailure(i->bindStates(addresses, bytes, 2, 0),
                MEGALITH_INVALID_ARGUMENT, {"'S'", "23 bytes"});
  unchanged();

  bytes[0] = 24;
  size_t allocations = device().allocations.size();
  int waits = device().calls["cuCtxSynchronize"];
  EXPECT_OK(i->bindStates(addresses, bytes, 2, 2));
  EXPECT_EQ(device().allocations.size(), allocations - 2);
  EXPECT_EQ(device().calls["cuCtxSynchronize"], waits + 1);
  EXPECT_EQ(i->capacity(), 3);
  EXPECT_EQ(i->position(), 2);
  EXPECT_OK(i->step(inputAddress, outputAddress, nullptr));
  EXPECT_EQ(device().states[0], reinterpret_cast<uint64_t>(s));
  EXPECT_EQ(device().states[1], reinterpret_cast<uint64_t>(cache));

  // The caller's memory in place of the caller's: nothing waits.
  waits = device().calls["cuCtxSynchronize"];
  EXPECT_OK(i->bindStates(addresses, bytes, 2, 0));
  EXPECT_EQ(device().calls["cuCtxSynchronize"], waits);
  i.reset();
  device().allocations.erase(reinterpret_cast<uint64_t>(s));
  device().allocations.erase(reinterpret_cast<uint64_t>(cache));
}

TEST_F(InstanceTest, HostStepProbeAndReset) {
  std::unique_ptr<Instance> i = createBound(4);
  EXPECT_OK(i->stepHost(input, output));
  EXPECT_EQ(std::memcmp(input, output, sizeof(input)), 0);
  EXPECT_EQ(i->position(), 1);
  device().launchResult = 700;
  expectFailure(i->stepHost(input, output), MEGALITH_DRIVER_ERROR, {"700"});
  EXPECT_EQ(i->position(), 1);

  int32_t ids[4] = {};
  device().header.workspace[64 + 4] = 42;
  EXPECT_OK(i->readProbe("ids", ids, sizeof(ids)));
  EXPECT_EQ(ids[1], 42);
  expectFailure(i->readProbe("ids", ids, 4), MEGALITH_INVALID_ARGUMENT,
                {"'ids'", "4 bytes", "expected 16"});
  expectFailure(i->readProbe("idx", ids, 16), MEGALITH_NOT_FOUND, {"'idx'"});

  float s[6] = {1, 2, 3, 4, 5, 6};
  EXPECT_OK(i->setState("S", s, sizeof(s)));
  EXPECT_OK(i->reset());
  EXPECT_EQ(i->position(), 0);
  EXPECT_OK(i->getState("S", s, sizeof(s)));
  EXPECT_EQ(s[5], 0);
  EXPECT_OK(i->readProbe("ids", ids, sizeof(ids)));
  EXPECT_EQ(ids[1], 0);
  EXPECT_OK(i->weightsReady());
}

TEST_F(InstanceTest, CInterface) {
  megalith_bundle *bundle = nullptr;
  ASSERT_EQ(megalith_bundle_load(folder.path.c_str(), &bundle), MEGALITH_OK)
      << megalith_last_error();
  megalith_instance *instance = nullptr;
  ASSERT_EQ(megalith_instance_create(bundle, 0, 4, &instance), MEGALITH_OK)
      << megalith_last_error();
  // Instances keep what they need of the bundle.
  EXPECT_EQ(megalith_bundle_free(bundle), MEGALITH_OK);

  TensorMap map = sampleTensors();
  for (auto &[name, tensor] : map.tensors) {
    EXPECT_EQ(megalith_bind_weight(
                  instance, name.c_str(), megalith_dtype(tensor.dtype),
                  int32_t(tensor.shape.size()), tensor.shape.data(),
                  tensor.data, tensor.bytes),
              MEGALITH_OK)
        << megalith_last_error();
    tensor = Tensor(); // only borrowed during the call
  }
  EXPECT_EQ(megalith_weights_ready(instance), MEGALITH_OK);
  EXPECT_EQ(megalith_step(instance, input, output, nullptr), MEGALITH_OK);
  EXPECT_EQ(megalith_step_host(instance, input, output), MEGALITH_OK);
  int64_t position = 0, capacity = 0;
  EXPECT_EQ(megalith_get_position(instance, &position), MEGALITH_OK);
  EXPECT_EQ(position, 2);
  EXPECT_EQ(megalith_cache_capacity(instance, &capacity), MEGALITH_OK);
  EXPECT_EQ(capacity, 4);
  void *pointer = nullptr;
  EXPECT_EQ(megalith_state_pointer(instance, "S", &pointer), MEGALITH_OK);
  EXPECT_NE(pointer, nullptr);

  int64_t shape[1] = {16};
  EXPECT_EQ(megalith_bind_weight(instance, "norm", MEGALITH_BF16, 1, shape,
                                 input, 31),
            MEGALITH_INVALID_ARGUMENT);
  EXPECT_STREQ(megalith_last_error(),
               "tensor 'norm': 31 bytes do not fit BF16 of shape 16");
  EXPECT_EQ(megalith_bind_weight(instance, "norm", megalith_dtype(9), 1, shape,
                                 input, 32),
            MEGALITH_INVALID_ARGUMENT);
  EXPECT_EQ(megalith_bind_weight(instance, "norm", MEGALITH_BF16, -1, shape,
                                 input, 32),
            MEGALITH_INVALID_ARGUMENT);
  EXPECT_EQ(megalith_set_state(instance, nullptr, input, 1),
            MEGALITH_INVALID_ARGUMENT);
  EXPECT_STREQ(megalith_last_error(), "argument name is null");
  EXPECT_EQ(megalith_step(nullptr, input, output, nullptr),
            MEGALITH_INVALID_ARGUMENT);
  EXPECT_EQ(megalith_reset(instance), MEGALITH_OK);
  EXPECT_EQ(megalith_instance_destroy(instance), MEGALITH_OK);
}

TEST_F(InstanceTest, InstancesShareWeightsAndNothingElse) {
  auto first = create(4);
  ASSERT_TRUE(first);
  auto second = (*first)->share(8);
  ASSERT_TRUE(second) << second.status().message();
  EXPECT_EQ(device().modules, 1);
  EXPECT_EQ((*second)->capacity(), 8);
  expectFailure((*first)->share(-1).status(), MEGALITH_INVALID_ARGUMENT,
                {"-1 rows"});
  // Bound through one, bound for both.
  EXPECT_OK((*second)->bindTensors(sampleTensors()));
  EXPECT_OK((*first)->weightsReady());
  EXPECT_OK((*first)->step(inputAddress, outputAddress, nullptr));
  mega_kernel_header before = device().header;
  std::vector<CUdeviceptr> states = device().states;
  EXPECT_OK((*second)->step(inputAddress, outputAddress, nullptr));
  EXPECT_EQ(device().header.weights, before.weights);
  EXPECT_NE(device().header.workspace, before.workspace);
  EXPECT_NE(device().states[0], states[0]);
  EXPECT_NE(device().states[1], states[1]);
  EXPECT_OK((*second)->step(inputAddress, outputAddress, nullptr));
  EXPECT_EQ((*first)->position(), 1);
  EXPECT_EQ((*second)->position(), 2);
  // The weights live as long as either.
  first->reset();
  EXPECT_OK((*second)->step(inputAddress, outputAddress, nullptr));
  std::vector<uint8_t> arena(5152);
  EXPECT_OK(packWeights(parsedSample(), sampleTensors(), arena.data()));
  EXPECT_EQ(std::memcmp(device().header.weights, arena.data(), arena.size()),
            0);
}

TEST_F(InstanceTest, WriteWeightsAndWorkspace) {
  std::unique_ptr<Instance> instance = createBound();
  uint8_t bytes[4] = {9, 8, 7, 6};
  EXPECT_OK(instance->writeWeights(5148, bytes, 4));
  EXPECT_OK(instance->writeWorkspace(252, bytes, 4));
  EXPECT_OK(instance->step(inputAddress, outputAddress, nullptr));
  EXPECT_EQ(device().header.weights[5148], 9);
  EXPECT_EQ(device().header.workspace[252], 9);
  expectFailure(instance->writeWeights(5149, bytes, 4),
                MEGALITH_INVALID_ARGUMENT, {"5149..5153", "arena of 5152"});
  expectFailure(instance->writeWeights(UINT64_MAX, bytes, 4),
                MEGALITH_INVALID_ARGUMENT, {"arena of 5152"});
  expectFailure(instance->writeWorkspace(253, bytes, 4),
                MEGALITH_INVALID_ARGUMENT, {"253..257", "workspace of 256"});
}

TEST_F(InstanceTest, WaitNamesWhereAKernelHangs) {
  write(replaced(replaced(sampleManifest(), "{\"bytes\": 256}",
                          "{\"bytes\": 256, \"persistent\": [{\"offset\": 0,"
                          "\"bytes\": 16, \"kind\": \"grid_barrier\"}]}"),
                 "\"max_ctas\": 100", "\"max_ctas\": 4"));
  std::unique_ptr<Instance> instance = createBound();
  EXPECT_OK(instance->step(inputAddress, outputAddress, nullptr));
  EXPECT_OK(instance->wait(nullptr, std::chrono::milliseconds(0)));
  uint32_t counter = 2;
  std::memcpy(device().header.workspace, &counter, sizeof counter);
  device().hangs = true;
  expectFailure(instance->wait(nullptr, std::chrono::milliseconds(20)),
                MEGALITH_TIMEOUT,
                {"20 ms", "position 1", "no word of progress",
                 "grid barrier at workspace + 0: 2 of 4 ctas have arrived, cta "
                 "0 is not among them"});
  device().hangs = false;
  EXPECT_OK(instance->wait(nullptr, std::chrono::milliseconds(20)));
}

TEST_F(InstanceTest, WatchdogBoundsEveryWait) {
  std::unique_ptr<Instance> instance = createBound();
  instance->setWatchdog(std::chrono::milliseconds(20));
  EXPECT_OK(instance->stepHost(input, output));
  device().hangs = true;
  float s[6] = {};
  int32_t ids[4];
  expectFailure(instance->getState("S", s, sizeof s), MEGALITH_TIMEOUT,
                {"Fake GPU is not done after 20 ms"});
  expectFailure(instance->readProbe("ids", ids, sizeof ids), MEGALITH_TIMEOUT,
                {});
  expectFailure(instance->stepHost(input, output), MEGALITH_TIMEOUT, {});
  EXPECT_EQ(instance->position(), 1);
  expectFailure(instance->reset(), MEGALITH_TIMEOUT, {});
  EXPECT_EQ(instance->position(), 1);
  // Freeing would wait for the kernel, so everything stays.
  size_t allocations = device().allocations.size();
  instance.reset();
  EXPECT_EQ(device().allocations.size(), allocations);
  EXPECT_EQ(device().modules, 1);
  device().hangs = false;
  while (!device().released)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  // The threads that waited leave the context after that.
  while (device().contextDepth != 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  for (const auto &[address, bytes] : device().allocations)
    std::free(reinterpret_cast<void *>(address));
  device().allocations.clear();
  device().modules = device().retained = 0;
}

TEST_F(InstanceTest, CInterfaceSharesAndWaits) {
  megalith_bundle *bundle = nullptr;
  ASSERT_EQ(megalith_bundle_load(folder.path.c_str(), &bundle), MEGALITH_OK);
  megalith_instance *first = nullptr, *second = nullptr;
  ASSERT_EQ(megalith_instance_create(bundle, 0, 4, &first), MEGALITH_OK)
      << megalith_last_error();
  ASSERT_EQ(megalith_instance_share(first, 2, &second), MEGALITH_OK)
      << megalith_last_error();
  megalith_instance_info info;
  ASSERT_EQ(megalith_instance_get_info(second, &info), MEGALITH_OK);
  EXPECT_STREQ(info.device_name, "Fake GPU");
  EXPECT_STREQ(info.arch, "sm_90a");
  EXPECT_EQ(info.device, 0);
  EXPECT_EQ(info.origin, MEGALITH_ORIGIN_CUBIN);
  EXPECT_EQ(info.ctas, 100);
  EXPECT_EQ(info.threads, 512);
  EXPECT_EQ(info.shared_bytes, 100000);
  EXPECT_EQ(megalith_wait(second, nullptr, 1), MEGALITH_OK);
  EXPECT_EQ(megalith_set_watchdog(second, 1000), MEGALITH_OK);
  EXPECT_EQ(megalith_wait(nullptr, nullptr, 1), MEGALITH_INVALID_ARGUMENT);
  EXPECT_EQ(megalith_instance_share(first, 1, nullptr),
            MEGALITH_INVALID_ARGUMENT);
  EXPECT_EQ(megalith_instance_destroy(first), MEGALITH_OK);
  EXPECT_EQ(megalith_instance_destroy(second), MEGALITH_OK);
  EXPECT_EQ(megalith_bundle_free(bundle), MEGALITH_OK);
}
