// SPDX-License-Identifier: Apache-2.0
/// \file
/// What kernel text that was compiled for the host and the engine that runs it
/// say to each other: plain types, no library headers. Both sides include it.

#ifndef MEGA_SIM_PRELUDE_ENGINE_H
#define MEGA_SIM_PRELUDE_ENGINE_H

namespace mega {
namespace sim {

/// Of an atomic access, as PTX's .relaxed, .acquire, .release, .acq_rel.
enum class Order : unsigned char { Relaxed, Acquire, Release, AcquireRelease };

/// Whom an access or a fence orders, as PTX's .cta, .cluster, .gpu, .sys.
enum class Scope : unsigned char { Cta, Cluster, Gpu, System };

/// How a load that is no atomic reads global memory.
enum class LoadKind : unsigned char {
  Plain,    ///< through L1, the order of the program
  L2,       ///< ld.global.cg
  Constant, ///< ld.global.nc: nobody writes it during the launch
};

enum class AtomicOp : unsigned char {
  Load,
  Store,
  Add,
  Exchange,
  CompareExchange,
  Min,
  Max,
  And,
  Or
};

/// What would end a thread's wait on a variable.
enum class Until : unsigned char {
  BitSet,   ///< bit number `target` is set
  BitClear, ///< bit number `target` is not set
  AtLeast,  ///< the value is `target` or more, unsigned
};

enum class ShuffleKind : unsigned char { Index, Up, Down, Xor };

/// Special registers of the running thread, and the window of memory that the
/// engine watches.
struct Registers {
  struct Triple {
    unsigned x, y, z;
  };
  Triple threadIdx, blockIdx, blockDim, gridDim;
  unsigned char *shared;
  unsigned long long arenaBase, arenaSize;
};

/// The engine's entry points. In reports, an access stands where the kernel's
/// text called; `readAt` and `writeAt` are given the place.
struct Api {
  void (*read)(const void *address, unsigned bytes, LoadKind kind);
  void (*readAt)(const void *address, unsigned bytes, const void *place);
  void (*writeAt)(void *address, unsigned bytes, const void *place);
  unsigned long long (*atomic)(AtomicOp op, void *address, unsigned bytes,
                               unsigned long long operand,
                               unsigned long long compare, Order order,
                               Scope scope);
  /// Blocks while the variable, a `what` in reports, holds `seen`. The others
  /// say what would end the loop that calls it.
  void (*spin)(const void *address, unsigned bytes, unsigned long long seen,
               const char *what, Until until, unsigned long long target);
  /// The loop is over, because of the value that was read last: a change that
  /// takes it back must come after.
  void (*waited)(const void *address, unsigned bytes, Until until,
                 unsigned long long target);
  void (*fence)(Order order, Scope scope);
  /// CTA barrier `id` for `count` threads; 0 means all of the CTA.
  void (*barrier)(unsigned id, unsigned count, bool wait);
  void (*syncWarp)(unsigned mask);
  unsigned (*shuffle)(ShuffleKind kind, unsigned mask, unsigned value,
                      unsigned operand, unsigned width);
  unsigned (*ballot)(unsigned mask, bool value);
  void (*mma16816)(float *d, const unsigned *a, const unsigned *b);
  void (*ldmatrix)(unsigned *out, const void *row, unsigned matrices,
                   bool transposed);
  /// An mbarrier in shared memory that `count` arrivals complete.
  void (*mbarrierInit)(void *barrier, unsigned count);
  /// fence.mbarrier_init: shows them to asynchronous copies.
  void (*fenceMbarrierInit)();
  /// Arrives; the phase then also waits for `bytes` of copies.
  void (*mbarrierArrive)(void *barrier, unsigned bytes);
  /// Returns once the phase of that parity is complete.
  void (*mbarrierWait)(void *barrier, unsigned parity);
  /// Starts an asynchronous copy into shared memory that reports its bytes to
  /// `barrier`.
  void (*bulkCopy)(void *to, const void *from, unsigned bytes, void *barrier);
  /// fence.proxy.async
  void (*fenceProxy)();
  /// cp.async: starts a copy into shared memory by the thread itself.
  void (*copyAsync)(void *to, const void *from, unsigned bytes);
  /// cp.async.commit_group: what was started since the last is one group.
  void (*commitGroup)();
  /// cp.async.wait_group: returns once all but `pending` groups are complete.
  void (*waitGroup)(unsigned pending);
  /// Where the thread stands, for reports; tile -1 for none.
  void (*atPhase)(int phase);
  void (*atStage)(int stage);
  void (*atTile)(int tile);
};

} // namespace sim
} // namespace mega

#endif // MEGA_SIM_PRELUDE_ENGINE_H
