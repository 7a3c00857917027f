// SPDX-License-Identifier: Apache-2.0
/// \file
/// Buffers, poison between launches, and launches.

#include "Kernel.h"

#include "Error.h"

#include <cstring>

using namespace megalith;
using namespace megalith::sim;

struct SimMachine::Impl {
  Impl(std::shared_ptr<SimKernel> kernel, const SimShape &shape,
       const std::vector<SimBuffer> &buffers);

  /// Takes away what a launch must not find.
  void poison();

  std::shared_ptr<SimKernel> kernel;
  Arena arena;
  std::vector<size_t> regions; ///< by buffer
  std::vector<size_t> windows; ///< by CTA
  std::unique_ptr<Machine> machine;
};

static RegionKind regionKind(SimBuffer::Kind kind) {
  switch (kind) {
  case SimBuffer::Kind::Constant:
    return RegionKind::Constant;
  case SimBuffer::Kind::State:
    return RegionKind::State;
  case SimBuffer::Kind::Output:
    return RegionKind::Output;
  case SimBuffer::Kind::Workspace:
    break;
  }
  return RegionKind::Workspace;
}

SimMachine::Impl::Impl(std::shared_ptr<SimKernel> newKernel,
                       const SimShape &shape,
                       const std::vector<SimBuffer> &buffers)
    : kernel(std::move(newKernel)), regions(buffers.size()) {
  if (shape.ctas < 1 || shape.ctas > 4096)
    fail(MEGALITH_INVALID_ARGUMENT, "{} CTAs, expected 1 to 4096", shape.ctas);
  if (shape.threads < 32 || shape.threads > 1024 || shape.threads % 32 != 0)
    fail(MEGALITH_INVALID_ARGUMENT,
         "{} threads a CTA, expected a multiple of 32 up to 1024",
         shape.threads);
  if (shape.sharedBytes < 0)
    fail(MEGALITH_INVALID_ARGUMENT,
         "{} bytes of shared memory, expected 0 or more", shape.sharedBytes);
  for (bool constant : {true, false})
    for (size_t i = 0; i < buffers.size(); ++i)
      if ((buffers[i].kind == SimBuffer::Kind::Constant) == constant) {
        regions[i] = arena.add(buffers[i].name, regionKind(buffers[i].kind),
                               buffers[i].bytes);
        arena.region(regions[i]).valid = buffers[i].bytes;
      }
  for (int cta = 0; cta < shape.ctas; ++cta)
    windows.push_back(arena.add(fmt::format("shared memory of CTA {}", cta),
                                RegionKind::Shared, shape.sharedBytes));
  arena.map();
  machine =
      std::make_unique<Machine>(arena, kernel->impl->program, shape, windows);
}

void SimMachine::Impl::poison() {
  // Variables of atomics live on; the rest of the workspace does not.
  std::vector<std::pair<uint64_t, std::vector<uint8_t>>> kept;
  for (auto [offset, bytes] : machine->variables())
    kept.emplace_back(offset,
                      std::vector<uint8_t>(arena.base() + offset,
                                           arena.base() + offset + bytes));
  for (size_t i = 0; i < arena.regionCount(); ++i)
    if (arena.region(i).kind != RegionKind::Constant &&
        arena.region(i).kind != RegionKind::State)
      arena.poison(i);
  for (auto &[offset, bytes] : kept)
    std::memcpy(arena.base() + offset, bytes.data(), bytes.size());
}

SimMachine::SimMachine(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
SimMachine::~SimMachine() = default;

Result<std::unique_ptr<SimMachine>>
SimMachine::create(std::shared_ptr<SimKernel> kernel, const SimShape &shape,
                   std::vector<SimBuffer> buffers) {
  return guardResult<std::unique_ptr<SimMachine>>([&] {
    return std::unique_ptr<SimMachine>(new SimMachine(
        std::make_unique<Impl>(std::move(kernel), shape, buffers)));
  });
}

uint8_t *SimMachine::data(size_t buffer) {
  return impl->arena.address(impl->regions[buffer]);
}

void SimMachine::setValid(size_t buffer, uint64_t bytes) {
  impl->arena.region(impl->regions[buffer]).valid = bytes;
}

Result<SimRun> SimMachine::launch(const void *parameter, uint64_t bytes,
                                  const SimOptions &options) {
  return guardResult<SimRun>([&] {
    const SimKernel::Impl &kernel = *impl->kernel->impl;
    if (bytes != kernel.parameterBytes)
      fail(MEGALITH_MISMATCH,
           "kernel parameter has {} bytes, expected {} as in the kernel's text",
           bytes, kernel.parameterBytes);
    impl->poison();
    SimRun run;
    std::vector<Finding> findings;
    impl->machine->launch(parameter, options, run, findings);
    run.reports =
        describe(findings, kernel, impl->arena, unsigned(impl->windows.size()));
    return run;
  });
}
