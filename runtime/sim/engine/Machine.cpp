// SPDX-License-Identifier: Apache-2.0
/// \file
/// Threads: their start, their switches, their end, and plain accesses.

#include "Machine.h"

#include "Error.h"

#include <mutex>
#include <tuple>

using namespace megalith;
using namespace megalith::sim;

/// Stack of a thread. The largest frames of kernel text are a few KiB.
static constexpr size_t stackBytes = 64 << 10;
/// CTA barriers, as the hardware has them.
static constexpr unsigned barrierCount = 16;

/// The machine whose threads run.
static Machine *active = nullptr;
static std::mutex activeMutex;

Machine::Machine(Arena &arena, const Program &program, const SimShape &shape,
                 const std::vector<size_t> &sharedRegions)
    : arena(arena), program(program), shape(shape),
      sharedRegions(sharedRegions), warpCount(shape.threads / 32),
      stacks(size_t(shape.ctas) * shape.threads, stackBytes),
      scheduler(shape.ctas, warpCount), threads(shape.ctas * shape.threads),
      warps(shape.ctas * warpCount), barriers(shape.ctas * barrierCount) {
  if (program.races)
    shadow = std::make_unique<Shadow>(arena);
}

void Machine::launch(const void *newParameter, const SimOptions &newOptions,
                     SimRun &newRun, std::vector<Finding> &newFindings) {
  std::lock_guard<std::mutex> lock(activeMutex);
  active = this;
  parameter = newParameter;
  options = newOptions;
  run = &newRun;
  findings = &newFindings;
  known.clear();
  stopped = false;
  scheduler.start(options.policy, options.seed);
  if (shadow)
    shadow->clear();
  for (auto &[offset, variable] : variableAt) {
    uint32_t bytes = variable.bytes;
    variable = Variable();
    variable.bytes = bytes;
  }
  warps.assign(warps.size(), Warp());
  barriers.assign(barriers.size(), Barrier());
  // A second half for the agents of asynchronous copies.
  Clock nothing(2 * shape.ctas);
  mbarrierAt.clear();
  mbarrierEnd = 0;
  alive = unsigned(threads.size());
  for (unsigned i = 0; i < threads.size(); ++i) {
    const unsigned index = i % shape.threads;
    threads[i] = Thread();
    threads[i].key = ThreadKey(i / shape.threads, index / 32, index % 32);
    threads[i].known = nothing;
    threads[i].stack = stacks.prepare(i, threadMain);
  }
  Registers &registers = *program.registers;
  registers = Registers();
  registers.blockDim = {unsigned(shape.threads), 1, 1};
  registers.gridDim = {unsigned(shape.ctas), 1, 1};
  registers.arenaBase = reinterpret_cast<uintptr_t>(arena.base());
  registers.arenaSize = arena.size();

  Thread outside;
  current = &outside;
  outside.key = ThreadKey(shape.ctas - 1, warpCount - 1, 31);
  std::optional<ThreadKey> first = scheduler.next(outside.key);
  Thread &next = thread(*first);
  current = &next;
  registers.threadIdx.x = next.key.index();
  registers.blockIdx.x = next.key.cta();
  registers.shared = arena.address(sharedRegions[next.key.cta()]);
  megalithSimSwitch(&mainStack, next.stack);
  // Back here when all are done, when nobody can run, or when stopped.
  if (!stopped && alive != 0)
    reportDeadlock();
  for (size_t i = 0; i < threads.size(); ++i)
    if (!stacks.intact(i)) {
      current = &threads[i];
      report(SimReport::Kind::StackOverflow, nullptr,
             fmt::format("a thread's stack reached its last page; it has {} "
                         "bytes",
                         stackBytes));
      break;
    }
  active = nullptr;
}

void Machine::threadMain() {
  Machine &machine = *active;
  machine.program.entry(machine.parameter);
  machine.current->state = State::Done;
  --machine.alive;
  machine.block(State::Done, nullptr);
}

void Machine::resume(ThreadKey key) {
  Thread *previous = current;
  Thread &next = thread(key);
  if (&next == previous)
    return;
  ++run->switches;
  current = &next;
  Registers &registers = *program.registers;
  registers.threadIdx.x = key.index();
  if (key.cta() != previous->key.cta()) {
    registers.blockIdx.x = key.cta();
    registers.shared = arena.address(sharedRegions[key.cta()]);
  }
  megalithSimSwitch(&previous->stack, next.stack);
}

void Machine::block(State state, const void *code) {
  current->state = state;
  current->waitCode = code ? codeOf(code) : 0;
  scheduler.block(current->key);
  if (std::optional<ThreadKey> next = scheduler.next(current->key))
    resume(*next);
  else
    megalithSimSwitch(&current->stack, mainStack);
}

void Machine::yield() {
  if (std::optional<ThreadKey> next = scheduler.next(current->key))
    resume(*next);
}

void Machine::stop() {
  stopped = true;
  megalithSimSwitch(&current->stack, mainStack);
  __builtin_unreachable();
}

void Machine::wake(Thread &other) {
  other.state = State::Runnable;
  scheduler.wake(other.key.cta(), other.key.warp(), 1u << other.key.lane());
}

void Machine::report(Finding finding) {
  auto key =
      std::make_tuple(finding.kind, finding.now.place.code,
                      finding.hasEarlier ? finding.earlier.place.code : 0u);
  if (!known.insert(key).second)
    return;
  findings->push_back(std::move(finding));
  if (findings->size() >= options.maxReports && current->stack)
    stop();
}

void Machine::report(SimReport::Kind kind, const void *code,
                     std::string message) {
  Finding finding;
  finding.kind = kind;
  finding.now = {current->key, {code ? codeOf(code) : 0, current->stage}, ""};
  finding.message = std::move(message);
  report(std::move(finding));
}

void Machine::read(const void *address, uint32_t bytes, LoadKind kind,
                   const void *code) {
  const uint64_t offset = offsetOf(address);
  ++run->accesses;
  if (offset < arena.constantBytes()) {
    const Region *region = arena.find(offset);
    if (region && offset + bytes <= region->offset + region->bytes)
      return;
  }
  Finding finding;
  if (offset < arena.constantBytes() || offset + bytes > arena.size()) {
    finding.kind = SimReport::Kind::OutOfBounds;
    finding.now = {current->key, {codeOf(code), current->stage}, "read"};
    finding.hasAddress = true;
    finding.offset = offset;
    finding.bytes = bytes;
    report(std::move(finding));
    // What lies outside of the mapping cannot be read.
    if (offset + bytes > arena.size())
      stop();
    return;
  }
  const AccessKind access =
      kind == LoadKind::Constant ? AccessKind::Constant : AccessKind::Plain;
  if (!shadow->read(offset, bytes, access, accessor(code), finding))
    report(std::move(finding));
  if (scheduler.interrupts()) {
    scheduler.resetInterrupt();
    yield();
  }
}

void Machine::write(void *address, uint32_t bytes, const void *code) {
  const uint64_t offset = offsetOf(address);
  ++run->accesses;
  Finding finding;
  if (offset < arena.constantBytes()) {
    finding.kind = SimReport::Kind::OutOfBounds;
    finding.now = {current->key, {codeOf(code), current->stage}, "write"};
    finding.hasAddress = true;
    finding.offset = offset;
    finding.bytes = bytes;
    report(std::move(finding));
    return;
  }
  if (mbarrierEnd != 0)
    checkMbarriers(offset, bytes, code);
  if (!shadow->write(offset, bytes, AccessKind::Plain, accessor(code), finding))
    report(std::move(finding));
  if (scheduler.interrupts()) {
    scheduler.resetInterrupt();
    yield();
  }
}

//===----------------------------------------------------------------------===//
// The table that compiled text calls through
//===----------------------------------------------------------------------===//

/// Each asks for the return address of its own frame.
#define CODE __builtin_return_address(0)

static void apiRead(const void *address, unsigned bytes, LoadKind kind) {
  active->read(address, bytes, kind, CODE);
}
static void apiReadAt(const void *address, unsigned bytes, const void *place) {
  active->read(address, bytes, LoadKind::Plain, place);
}
static void apiWriteAt(void *address, unsigned bytes, const void *place) {
  active->write(address, bytes, place);
}
static unsigned long long apiAtomic(AtomicOp op, void *address, unsigned bytes,
                                    unsigned long long operand,
                                    unsigned long long compare, Order order,
                                    Scope scope) {
  return active->atomic(op, address, bytes, operand, compare, order, scope,
                        CODE);
}
static void apiSpin(const void *address, unsigned bytes,
                    unsigned long long seen, const char *what, Until until,
                    unsigned long long target) {
  active->spin(address, bytes, seen, what, until, target, CODE);
}
static void apiWaited(const void *address, unsigned bytes, Until until,
                      unsigned long long target) {
  active->waited(address, bytes, until, target, CODE);
}
static void apiFence(Order order, Scope scope) { active->fence(order, scope); }
static void apiBarrier(unsigned id, unsigned count, bool wait) {
  active->barrier(id, count, wait, CODE);
}
static void apiSyncWarp(unsigned mask) { active->syncWarp(mask, CODE); }
static unsigned apiShuffle(ShuffleKind kind, unsigned mask, unsigned value,
                           unsigned operand, unsigned width) {
  return active->shuffle(kind, mask, value, operand, width, CODE);
}
static unsigned apiBallot(unsigned mask, bool value) {
  return active->ballot(mask, value, CODE);
}
static void apiMma(float *d, const unsigned *a, const unsigned *b) {
  active->mma16816(d, a, b, CODE);
}
static void apiLdmatrix(unsigned *out, const void *row, unsigned matrices,
                        bool transposed) {
  active->ldmatrix(out, row, matrices, transposed, CODE);
}
static void apiMbarrierInit(void *barrier, unsigned count) {
  active->mbarrierInit(barrier, count, CODE);
}
static void apiFenceMbarrierInit() { active->fenceMbarrierInit(); }
static void apiMbarrierArrive(void *barrier, unsigned bytes) {
  active->mbarrierArrive(barrier, bytes, CODE);
}
static void apiMbarrierWait(void *barrier, unsigned parity) {
  active->mbarrierWait(barrier, parity, CODE);
}
static void apiBulkCopy(void *to, const void *from, unsigned bytes,
                        void *barrier) {
  active->bulkCopy(to, from, bytes, barrier, CODE);
}
static void apiFenceProxy() { active->fenceProxy(); }
static void apiCopyAsync(void *to, const void *from, unsigned bytes) {
  active->copyAsync(to, from, bytes, CODE);
}
static void apiCommitGroup() { active->commitGroup(); }
static void apiWaitGroup(unsigned pending) { active->waitGroup(pending); }
static void apiAtPhase(int phase) { active->atPhase(phase); }
static void apiAtStage(int stage) { active->atStage(stage); }
static void apiAtTile(int tile) { active->atTile(tile); }

const mega::sim::Api &megalith::sim::engineApi() {
  static const mega::sim::Api api = {
      apiRead,           apiReadAt,       apiWriteAt,
      apiAtomic,         apiSpin,         apiWaited,
      apiFence,          apiBarrier,      apiSyncWarp,
      apiShuffle,        apiBallot,       apiMma,
      apiLdmatrix,       apiMbarrierInit, apiFenceMbarrierInit,
      apiMbarrierArrive, apiMbarrierWait, apiBulkCopy,
      apiFenceProxy,     apiCopyAsync,    apiCommitGroup,
      apiWaitGroup,      apiAtPhase,      apiAtStage,
      apiAtTile,
  };
  return api;
}
