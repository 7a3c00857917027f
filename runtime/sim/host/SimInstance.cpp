// SPDX-License-Identifier: Apache-2.0

#include "mega/runtime/Simulator.h"

#include "Error.h"
#include "File.h"
#include "InstanceChecks.h"
#include "WeightBinder.h"

#include "mega/abi/Kernel.h"

#include <algorithm>
#include <cstring>

using namespace megalith;

/// CTAs unless the caller wants another number: enough that every way of
/// sharing out work is met, few enough to be quick.
static constexpr int usualCtas = 16;

struct SimInstance::Impl {
  Impl(std::shared_ptr<const Bundle> bundle, std::shared_ptr<SimKernel> kernel,
       int64_t capacityRows, int ctas);

  uint64_t stateBytes(const StateDesc &desc) const {
    return desc.isCache() ? desc.unitBytes * uint64_t(rows) : desc.unitBytes;
  }
  // Buffers of the machine; states follow.
  enum : size_t { Weights, Input, Output, Workspace, FirstState };

  std::shared_ptr<const Bundle> bundle;
  const Manifest &manifest;
  WeightBinder binder;
  int64_t rows;
  int ctas;
  int64_t position = 0;
  std::unique_ptr<SimMachine> machine;
  SimOptions options;
  SimRun run;
};

SimInstance::Impl::Impl(std::shared_ptr<const Bundle> shared,
                        std::shared_ptr<SimKernel> kernel, int64_t capacityRows,
                        int wantedCtas)
    : bundle(std::move(shared)), manifest(bundle->manifest), binder(manifest),
      rows(capacityRows),
      ctas(wantedCtas == 0 ? std::min(usualCtas, manifest.maxCtas)
                           : wantedCtas) {
  if (capacityRows < 0)
    fail(MEGALITH_INVALID_ARGUMENT,
         "cache capacity is {} rows, expected 0 or more", capacityRows);
  if (ctas < 1 || ctas > manifest.maxCtas)
    fail(MEGALITH_INVALID_ARGUMENT, "{} CTAs, expected 1 to {}", ctas,
         manifest.maxCtas);
  if (kernel->entry() != manifest.kernel)
    fail(MEGALITH_MISMATCH, "kernel text defines {}, expected {}",
         quote(kernel->entry()), quote(manifest.kernel));
  std::vector<SimBuffer> buffers = {
      {"weights", SimBuffer::Kind::Constant, manifest.weightBytes},
      {"input", SimBuffer::Kind::Constant, manifest.input.bytes},
      {"output", SimBuffer::Kind::Output, manifest.output.bytes},
      {"workspace", SimBuffer::Kind::Workspace, manifest.workspaceBytes}};
  for (const StateDesc &desc : manifest.states)
    buffers.push_back(
        {"state " + desc.name, SimBuffer::Kind::State, stateBytes(desc)});
  machine = take(SimMachine::create(
      std::move(kernel), {ctas, manifest.threads, manifest.sharedBytes},
      buffers));
}

SimInstance::SimInstance(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
SimInstance::~SimInstance() = default;

Result<std::unique_ptr<SimInstance>>
SimInstance::create(std::shared_ptr<const Bundle> bundle, int64_t capacityRows,
                    int ctas, const SimCompileOptions &compile) {
  return guardResult<std::unique_ptr<SimInstance>>([&] {
    std::string text = readFile(bundle->directory + "/kernel.cu", 64 << 20);
    SimCompileOptions options = compile;
    if (options.capability == 0)
      for (const TargetDesc &target : bundle->manifest.targets)
        options.capability = std::max(options.capability, target.capability);
    auto kernel = take(SimKernel::compile(text, options));
    return std::unique_ptr<SimInstance>(new SimInstance(std::make_unique<Impl>(
        std::move(bundle), std::move(kernel), capacityRows, ctas)));
  });
}

Result<std::unique_ptr<SimInstance>>
SimInstance::create(std::shared_ptr<const Bundle> bundle,
                    std::shared_ptr<SimKernel> kernel, int64_t capacityRows,
                    int ctas) {
  return guardResult<std::unique_ptr<SimInstance>>([&] {
    return std::unique_ptr<SimInstance>(new SimInstance(std::make_unique<Impl>(
        std::move(bundle), std::move(kernel), capacityRows, ctas)));
  });
}

const Bundle &SimInstance::bundle() const { return *impl->bundle; }
int SimInstance::grid() const { return impl->ctas; }

Status SimInstance::bindTensors(const TensorMap &map,
                                const std::string &prefix) {
  return guard([&] {
    std::vector<WeightBinder::NamedTensor> tensors =
        selectTensors(impl->manifest, impl->binder, map, prefix);
    uint8_t *weights = impl->machine->data(Impl::Weights);
    impl->binder.bind(
        tensors, [&](uint64_t offset, const uint8_t *data, uint64_t bytes) {
          std::memcpy(weights + offset, data, bytes);
        });
  });
}

Status SimInstance::weightsReady() const {
  return guard([&] { impl->binder.expectReady(); });
}

Status SimInstance::writeWeights(uint64_t offset, const void *data,
                                 uint64_t bytes) {
  return guard([&] {
    uint64_t size = impl->manifest.weightBytes;
    if (offset > size || bytes > size - offset)
      fail(MEGALITH_INVALID_ARGUMENT,
           "weight bytes {}..{} are not inside the arena of {}", offset,
           offset + bytes, size);
    std::memcpy(impl->machine->data(Impl::Weights) + offset, data, bytes);
  });
}

Status SimInstance::setState(const std::string &name, const void *data,
                             uint64_t bytes) {
  return guard([&] {
    size_t index = findState(impl->manifest, name);
    const StateDesc &desc = impl->manifest.states[index];
    expectStateCopy(desc, impl->stateBytes(desc), data, bytes);
    if (bytes != 0)
      std::memcpy(impl->machine->data(Impl::FirstState + index), data, bytes);
  });
}

Status SimInstance::getState(const std::string &name, void *data,
                             uint64_t bytes) {
  return guard([&] {
    size_t index = findState(impl->manifest, name);
    const StateDesc &desc = impl->manifest.states[index];
    expectStateCopy(desc, impl->stateBytes(desc), data, bytes);
    if (bytes != 0)
      std::memcpy(data, impl->machine->data(Impl::FirstState + index), bytes);
  });
}

int64_t SimInstance::capacity() const {
  if (impl->manifest.hasCaches() || impl->rows > 0)
    return impl->rows;
  return INT64_MAX;
}

Status SimInstance::setPosition(int64_t position) {
  return guard([&] {
    expectPosition(position, capacity());
    impl->position = position;
  });
}

int64_t SimInstance::position() const { return impl->position; }

void SimInstance::setOptions(const SimOptions &options) {
  impl->options = options;
}

Status SimInstance::stepHost(const void *input, void *output) {
  return guard([&] {
    if (!input || !output)
      fail(MEGALITH_INVALID_ARGUMENT, "input or output is null");
    impl->binder.expectReady();
    expectRoom(impl->position, capacity());
    SimMachine &machine = *impl->machine;
    const Manifest &manifest = impl->manifest;
    std::memcpy(machine.data(Impl::Input), input, manifest.input.bytes);
    // The kernel's one parameter: the header, then the states' addresses.
    std::vector<uint8_t> parameter(sizeof(mega_kernel_header) +
                                   manifest.states.size() * sizeof(void *));
    mega_kernel_header header;
    header.input = machine.data(Impl::Input);
    header.output = machine.data(Impl::Output);
    header.weights = machine.data(Impl::Weights);
    header.workspace = machine.data(Impl::Workspace);
    header.position = impl->position;
    std::memcpy(parameter.data(), &header, sizeof header);
    for (size_t i = 0; i < manifest.states.size(); ++i) {
      const StateDesc &desc = manifest.states[i];
      if (desc.isCache())
        machine.setValid(Impl::FirstState + i,
                         desc.unitBytes * uint64_t(impl->position));
      uint8_t *address = machine.data(Impl::FirstState + i);
      std::memcpy(parameter.data() + sizeof header + i * sizeof address,
                  &address, sizeof address);
    }
    impl->run =
        take(machine.launch(parameter.data(), parameter.size(), impl->options));
    if (!impl->run.reports.empty()) {
      std::string message = fmt::format(
          "the simulator found {} error{}", impl->run.reports.size(),
          impl->run.reports.size() == 1 ? "" : "s");
      for (const SimReport &report : impl->run.reports)
        message += "\n" + report.text;
      fail(MEGALITH_INTERNAL, "{}", message);
    }
    std::memcpy(output, machine.data(Impl::Output), manifest.output.bytes);
    ++impl->position;
  });
}

const SimRun &SimInstance::lastRun() const { return impl->run; }

Status SimInstance::readProbe(const std::string &name, void *data,
                              uint64_t bytes) {
  return guard([&] {
    const ProbeDesc &probe = findProbe(impl->manifest, name, data, bytes);
    std::memcpy(data, impl->machine->data(Impl::Workspace) + probe.offset,
                bytes);
  });
}

Status SimInstance::reset() {
  return guard([&] {
    for (size_t i = 0; i < impl->manifest.states.size(); ++i)
      std::memset(impl->machine->data(Impl::FirstState + i), 0,
                  impl->stateBytes(impl->manifest.states[i]));
    impl->position = 0;
  });
}
