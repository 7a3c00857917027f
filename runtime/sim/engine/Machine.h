// SPDX-License-Identifier: Apache-2.0
/// \file
/// A grid of threads that run compiled kernel text: what the text's calls to
/// the engine mean, and what a launch found.

#ifndef MEGA_SIM_ENGINE_MACHINE_H
#define MEGA_SIM_ENGINE_MACHINE_H

#include "Arena.h"
#include "Clock.h"
#include "Fiber.h"
#include "Finding.h"
#include "Scheduler.h"
#include "Shadow.h"

#include "../prelude/engine.h"
#include "mega/runtime/Simulator.h"

#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace megalith::sim {

using mega::sim::AtomicOp;
using mega::sim::LoadKind;
using mega::sim::Order;
using mega::sim::Registers;
using mega::sim::Scope;
using mega::sim::ShuffleKind;
using mega::sim::Until;

/// Compiled text, as the machine sees it.
struct Program {
  void (*entry)(const void *parameter);
  Registers *registers;
  /// Subtracted from code addresses; what remains fits 24 bits.
  uintptr_t codeBase;
  bool races;
  StageTable stages;
};

/// A warp instruction that lanes execute together.
enum class WarpOp : uint8_t { None, Sync, Shuffle, Ballot, Mma, Ldmatrix };

/// See the file's comment. One machine runs at a time in a process.
class Machine {
public:
  Machine(Arena &arena, const Program &program, const SimShape &shape,
          const std::vector<size_t> &sharedRegions);

  /// Runs all threads to their end, or to what makes that impossible.
  void launch(const void *parameter, const SimOptions &options, SimRun &run,
              std::vector<Finding> &findings);

  /// Offsets of the workspace that atomics have used, with their sizes.
  const std::map<uint64_t, uint32_t> &variables() const { return persistent; }

  // What kernel text calls. `code` is its return address.
  void read(const void *address, uint32_t bytes, LoadKind kind,
            const void *code);
  void write(void *address, uint32_t bytes, const void *code);
  uint64_t atomic(AtomicOp op, void *address, uint32_t bytes, uint64_t operand,
                  uint64_t compare, Order order, Scope scope, const void *code);
  void spin(const void *address, uint32_t bytes, uint64_t seen,
            const char *what, Until until, uint64_t target, const void *code);
  void waited(const void *address, uint32_t bytes, Until until, uint64_t target,
              const void *code);
  void fence(Order order, Scope scope);
  void barrier(unsigned id, unsigned count, bool wait, const void *code);
  void syncWarp(uint32_t mask, const void *code);
  uint32_t shuffle(ShuffleKind kind, uint32_t mask, uint32_t value,
                   uint32_t operand, uint32_t width, const void *code);
  uint32_t ballot(uint32_t mask, bool value, const void *code);
  void mma16816(float *d, const uint32_t *a, const uint32_t *b,
                const void *code);
  void ldmatrix(uint32_t *out, const void *row, unsigned matrices,
                bool transposed, const void *code);
  void mbarrierInit(void *barrier, uint32_t count, const void *code);
  void fenceMbarrierInit();
  void mbarrierArrive(void *barrier, uint32_t bytes, const void *code);
  void mbarrierWait(void *barrier, uint32_t parity, const void *code);
  void bulkCopy(void *to, const void *from, uint32_t bytes, void *barrier,
                const void *code);
  void fenceProxy();
  void copyAsync(void *to, const void *from, uint32_t bytes, const void *code);
  void commitGroup();
  void waitGroup(uint32_t pending);
  void atPhase(int phase) {
    current->firstStage = program.stages.firstStage(uint32_t(phase));
    atStage(0);
  }
  void atStage(int stage) {
    current->stage = current->firstStage + uint32_t(stage);
    current->tile = -1;
  }
  void atTile(int tile) { current->tile = tile; }

private:
  /// An asynchronous copy on its way.
  struct Copy {
    uint8_t *to;
    const uint8_t *from;
    uint32_t bytes;
    ThreadKey agent;
    uint32_t time;
    const void *code;
  };
  enum class State : uint8_t { Runnable, Barrier, Warp, Spin, Mbarrier, Done };
  struct Thread {
    void *stack = nullptr;
    ThreadKey key;
    State state = State::Runnable;
    uint32_t stage = noStage;
    uint32_t firstStage = 0; ///< of its phase
    int tile = -1;
    uint32_t time = 1;
    Clock known;
    /// What relaxed reads saw, until a fence acquires it.
    Clock seen;
    /// What the last proxy fence lets asynchronous copies see.
    Clock visible;
    /// When that fence was.
    uint32_t visibleTime = 0;
    /// What the last fence releases through later relaxed writes.
    Clock fenced;
    // Where and for what it waits.
    uint32_t waitCode = 0;
    unsigned waitBarrier = 0;
    uint64_t waitOffset = 0;
    uint32_t waitBytes = 0;
    const char *waitWhat = "";
    Until waitUntil = Until::AtLeast;
    uint64_t waitTarget = 0;
    uint32_t wakeups = 0;
    // The variable that it read or wrote last, and the version that it met.
    uint64_t metOffset = 0;
    size_t metVersion = 0;
    bool metByLoad = false;
    /// Asynchronous copies that this thread has started.
    uint32_t copies = 0;
    /// Those of its own that it has not waited for, by group; the last group
    /// is not committed yet.
    std::vector<std::vector<Copy>> groups;
    /// Mbarriers that it has initialised and asynchronous copies cannot see.
    std::vector<uint64_t> unseenBarriers;
  };
  struct Mbarrier {
    uint32_t count = 0, pending = 0, phase = 0;
    bool seenByCopies = false;
    int64_t bytes = 0; ///< expected and not yet arrived
    std::vector<Copy> copies;
    // What arrivals of this phase release, and those of the last one did.
    Clock arriving, completed;
    Clock arrivingVisible, completedVisible;
    std::vector<uint32_t> waiters;
  };
  /// What a lane brings to a warp instruction, and takes from it.
  struct Slot {
    uint32_t value, operand, width, out;
    float *d;
    const uint32_t *a, *b;
    uint32_t *words;
    const void *row;
    const void *code;
  };
  struct Warp {
    WarpOp op = WarpOp::None;
    uint32_t detail = 0, mask = 0, arrived = 0;
    Slot slots[32];
  };
  struct Barrier {
    unsigned expected = 0, arrived = 0;
    uint32_t waiting[32] = {}, passing[32] = {};
  };
  /// A value that an atomic left, and what reading it teaches.
  struct Version {
    uint64_t value = 0;
    ThreadKey writer;
    uint32_t time = 0;
    Place place;
    Clock released; ///< to everyone
    Clock visible;  ///< to everyone's asynchronous copies
    Clock narrow;   ///< to the threads of `narrowCta`
    unsigned narrowCta = 0;
  };
  /// A wait that ended.
  struct EndedWait {
    ThreadKey thread;
    uint32_t time;
    Place place;
    Until until;
    uint64_t target;
  };
  /// A location of atomics. Checked runs keep every version of a launch: a read
  /// may return an old one, as on the hardware, so a thread that waits meets
  /// each in turn and learns no more than it must.
  struct Variable {
    uint32_t bytes = 0;
    std::vector<Version> versions;
    size_t lastStore = 0; ///< version that a store left, no read-modify-write
    std::vector<uint32_t> waiters; ///< thread indices
    /// Those that no change known to follow them has come after.
    std::vector<EndedWait> ended;
  };

  static void threadMain();
  Thread &thread(unsigned cta, unsigned index) {
    return threads[cta * shape.threads + index];
  }
  Thread &thread(ThreadKey key) { return thread(key.cta(), key.index()); }
  Warp &warpOf(ThreadKey key) {
    return warps[key.cta() * warpCount + key.warp()];
  }
  uint32_t codeOf(const void *code) const {
    return uint32_t(reinterpret_cast<uintptr_t>(code) - program.codeBase);
  }
  uint64_t offsetOf(const void *address) const {
    return uint64_t(static_cast<const uint8_t *>(address) - arena.base());
  }
  Accessor accessor(const void *code) const {
    return {current->key, current->time, current->known,
            Place{codeOf(code), current->stage}};
  }

  void resume(ThreadKey key);
  /// Runs others; returns once the current thread, now blocked, was woken.
  void block(State state, const void *code);
  /// Lets others run first.
  void yield();
  /// Ends the launch from inside of a thread.
  [[noreturn]] void stop();
  void wake(Thread &thread);
  void report(Finding finding);
  void report(SimReport::Kind kind, const void *code, std::string message);

  /// Brings lane and warp together; true in the lane that completes it, which
  /// then computes for all.
  bool gather(WarpOp op, uint32_t detail, uint32_t mask, const void *code);
  void release(Warp &warp);
  /// Orders a barrier's threads after each other's past. Masks by warp.
  void synchronize(const uint32_t *waiting, const uint32_t *passing);
  Variable &variable(uint64_t offset, uint32_t bytes);
  /// The version that the current thread's load returns.
  const Version &load(Variable &at, uint64_t offset);
  void acquire(const Version &version, Order order, Scope scope);
  void append(Variable &at, uint64_t offset, uint64_t value, AtomicOp op,
              Order order, Scope scope, const void *code);
  /// Reports a store that no order keeps apart from other changes of the
  /// variable: legal, but one of them is lost.
  void checkLost(const Variable &at, uint64_t offset, AtomicOp op,
                 const void *code);
  /// Reports a change that takes back what a wait, not known to be over, is
  /// for: that wait may miss it, and then never ends.
  void checkTakenBack(Variable &at, uint64_t offset, uint64_t after,
                      AtomicOp op, const void *code);
  Mbarrier &mbarrier(const void *address, AtomicOp op, const void *code);
  /// Checks a copy and its accesses, and fills its target with poison. `sees`
  /// is what of the past the copy sees; null for the current thread's own.
  Copy startCopy(void *to, const void *from, uint32_t bytes, const Clock *sees,
                 const char *name, const void *code);
  /// Lets the copies that `at` counts arrive.
  void land(Mbarrier &at);
  void completeIfDone(Mbarrier &at);
  /// Reports an ordinary write to a live mbarrier.
  void checkMbarriers(uint64_t offset, uint32_t bytes, const void *code);
  /// The asynchronous engine as a thread of its own: it knows what its issuer
  /// knows, but nobody knows of it until an mbarrier says so. Its key lies
  /// behind all CTAs, so that no CTA barrier covers it.
  ThreadKey agentOf(ThreadKey issuer) const {
    return ThreadKey(shape.ctas + issuer.cta(), issuer.warp(), issuer.lane());
  }
  void reportDeadlock();
  std::string describeWait(const Thread &thread) const;
  /// "the counter at byte 4 of workspace, which is 1, expected at least 3".
  std::string describeVariable(const Thread &thread) const;

  Arena &arena;
  const Program program;
  const SimShape shape;
  std::vector<size_t> sharedRegions;
  const unsigned warpCount;
  StackPool stacks;
  Scheduler scheduler;
  std::unique_ptr<Shadow> shadow;
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  std::vector<Barrier> barriers;
  std::unordered_map<uint64_t, Variable> variableAt;
  std::map<uint64_t, uint32_t> persistent;
  std::unordered_map<uint64_t, Mbarrier> mbarrierAt;
  /// Where mbarriers end in a CTA's window: a filter for ordinary writes.
  uint64_t mbarrierEnd = 0;

  Thread *current = nullptr;
  void *mainStack = nullptr;
  const void *parameter = nullptr;
  unsigned alive = 0;
  bool stopped = false;
  SimOptions options;
  SimRun *run = nullptr;
  std::vector<Finding> *findings = nullptr;
  std::set<std::tuple<SimReport::Kind, uint32_t, uint32_t>> known;
};

/// The functions that compiled text calls; they act on the running machine.
const mega::sim::Api &engineApi();

} // namespace megalith::sim

#endif
