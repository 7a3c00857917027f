// SPDX-License-Identifier: Apache-2.0
// What megalith-bench runs beside a bundle's kernel: a read stream, and the
// ways in which CTAs can wait for each other, with and without a stream beside
// them. One text for all targets; no header is included, so that NVRTC alone
// compiles it.

typedef unsigned char u8;
typedef unsigned u32;
typedef unsigned long long u64;

//===----------------------------------------------------------------------===//
// Stream
//===----------------------------------------------------------------------===//

/// Fills `count` words with a hash of their index: memory that holds zeros, or
/// one value, may be faster than memory that does not.
extern "C" __global__ void bench_fill(uint4 *data, u64 count) {
  for (u64 i = u64(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += u64(gridDim.x) * blockDim.x) {
    u64 h = i * 0x9e3779b97f4a7c15ull;
    h ^= h >> 29;
    h *= 0xbf58476d1ce4e5b9ull;
    data[i] = make_uint4(u32(h), u32(h >> 32), u32(h) * 7u, u32(h >> 32) * 11u);
  }
}

__device__ __forceinline__ u32 streamWord(const uint4 *word) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(word));
  return v.x ^ v.y ^ v.z ^ v.w;
}

/// Reads `count` words of 16 bytes once, up to eight in flight a thread.
__device__ __forceinline__ void readStream(const uint4 *data, u64 count,
                                           u32 *sink) {
  const u64 threads = u64(gridDim.x) * blockDim.x;
  u64 i = u64(blockIdx.x) * blockDim.x + threadIdx.x;
  u32 all = 0;
  for (; i + 7 * threads < count; i += 8 * threads) {
    u32 v[8];
#pragma unroll
    for (int j = 0; j < 8; ++j)
      v[j] = streamWord(data + i + j * threads);
#pragma unroll
    for (int j = 0; j < 8; ++j)
      all ^= v[j];
  }
  for (; i < count; i += threads)
    all ^= streamWord(data + i);
  // Hardly ever true, and the compiler cannot know.
  if (all == 0x12345678u)
    *sink = all;
}

/// With registers for all eight in 1,024 threads an SM.
extern "C" __global__ void __launch_bounds__(1024, 1)
    bench_stream_deep(const uint4 *data, u64 count, u32 *sink) {
  readStream(data, count, sink);
}

/// With 2,048 threads an SM.
extern "C" __global__ void __launch_bounds__(1024, 2)
    bench_stream_wide(const uint4 *data, u64 count, u32 *sink) {
  readStream(data, count, sink);
}

//===----------------------------------------------------------------------===//
// Launch and clock
//===----------------------------------------------------------------------===//

/// Nothing: what a launch costs by itself.
extern "C" __global__ void bench_empty(u32 *sink) {
  if (sink == nullptr)
    __trap();
}

/// One thread counts SM clocks while `nanoseconds` pass: out[0] clocks, out[1]
/// nanoseconds.
extern "C" __global__ void bench_clock(u64 *out, u64 nanoseconds) {
  u64 begin, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin) : : "memory");
  // Starts at a tick of the timer, which may be as coarse as a microsecond.
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now) : : "memory");
  } while (now == begin);
  begin = now;
  const long long clocks = clock64();
  do {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now) : : "memory");
  } while (now - begin < nanoseconds);
  out[0] = u64(clock64() - clocks);
  out[1] = now - begin;
}

//===----------------------------------------------------------------------===//
// Edges
//===----------------------------------------------------------------------===//

/// What CTAs do round after round. Values of `mode`.
enum Mode {
  /// A grid barrier.
  kBarrier = 0,
  /// Each CTA stores its share of a vector; a barrier; each loads all of it.
  kEdge = 1,
  /// The same, but each 16-byte word carries its round, and reading it is the
  /// wait.
  kFlagged = 2,
  /// A counter for each group of kGroup CTAs: arrive, wait for the group.
  kCounter = 3,
};

constexpr int kGroup = 4;
constexpr int kSlots = 8;
constexpr int kStreamWarps = 1;

/// Waits until the counter has passed `target`, which may wrap.
__device__ __forceinline__ void awaitCount(const u32 *counter, u32 target) {
  u32 now;
  do {
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];"
                 : "=r"(now)
                 : "l"(counter)
                 : "memory");
  } while (int(now - target) < 0);
}

__device__ __forceinline__ void arrive(u32 *counter) {
  asm volatile("red.release.gpu.global.add.u32 [%0], 1;"
               :
               : "l"(counter)
               : "memory");
}

/// The threads that wait for other CTAs: all but the streaming warp.
__device__ __forceinline__ void syncWaiters() {
  asm volatile("bar.sync 1, %0;" : : "r"(blockDim.x - kStreamWarps * 32)
               : "memory");
}

/// One warp reads [data, data + bytes) of this CTA again and again, with at most
/// kSlots copies of `slotBytes` in flight, until `*stop`; the bytes it read.
__device__ u64 streamBeside(const u8 *data, u64 bytes, u32 slotBytes, u8 *slots,
                            u64 *barriers, volatile u32 *stop) {
  const int lane = threadIdx.x % 32;
  u64 at = 0, total = 0;
  u32 issued = 0, taken = 0;
#if __CUDA_ARCH__ >= 900
  const u32 first = u32(__cvta_generic_to_shared(barriers));
  if (lane == 0) {
    for (int slot = 0; slot < kSlots; ++slot)
      asm volatile("mbarrier.init.shared.b64 [%0], 1;"
                   :
                   : "r"(first + slot * 8)
                   : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" : : : "memory");
  }
#endif
  __syncwarp();
  for (;;) {
    const bool go = *stop == 0;
    while (go && issued - taken < kSlots) {
      const u32 slot = issued % kSlots;
      const u32 to =
          u32(__cvta_generic_to_shared(slots)) + slot * slotBytes;
#if __CUDA_ARCH__ >= 900
      if (lane == 0) {
        asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;"
                     :
                     : "r"(first + slot * 8), "r"(slotBytes)
                     : "memory");
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::"
                     "complete_tx::bytes [%0], [%1], %2, [%3];"
                     :
                     : "r"(to), "l"(data + at), "r"(slotBytes),
                       "r"(first + slot * 8)
                     : "memory");
      }
#else
      for (u32 byte = lane * 16; byte < slotBytes; byte += 32 * 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                     :
                     : "r"(to + byte), "l"(data + at + byte)
                     : "memory");
      asm volatile("cp.async.commit_group;" : : : "memory");
#endif
      ++issued;
      at = at + 2 * slotBytes <= bytes ? at + slotBytes : 0;
    }
    if (issued == taken)
      return total;
#if __CUDA_ARCH__ >= 900
    u32 done;
    do {
      asm volatile("{\n\t.reg .pred p;\n\t"
                   "mbarrier.try_wait.parity.shared.b64 p, [%1], %2;\n\t"
                   "selp.u32 %0, 1, 0, p;\n\t}"
                   : "=r"(done)
                   : "r"(first + taken % kSlots * 8), "r"(taken / kSlots % 2)
                   : "memory");
    } while (!done);
#else
    if (go)
      asm volatile("cp.async.wait_group %0;" : : "n"(kSlots - 1) : "memory");
    else
      asm volatile("cp.async.wait_group 0;" : : : "memory");
    __syncwarp();
#endif
    ++taken;
    total += slotBytes;
  }
}

/// What bench_edges works on. `counters` are zero; `words` has two halves of
/// `wordCount` 16-byte words each, zero too.
struct Edges {
  u64 mode, rounds, counters, words, wordCount;
  u64 stream, streamBytes, slotBytes; ///< a CTA's part; slotBytes 0: no stream
  u64 streamed;                       ///< one sum of bytes a CTA
};

extern "C" __global__ void __launch_bounds__(512) bench_edges(Edges p) {
  extern __shared__ __align__(128) u8 shared[];
  __shared__ u32 stop;
  __shared__ u64 mbarriers[kSlots];
  u64 *barriers = mbarriers;
  uint4 *vector = reinterpret_cast<uint4 *>(shared);
  u8 *slots = shared + p.wordCount * 16;
  const u32 waiters = blockDim.x - kStreamWarps * 32;
  if (threadIdx.x == 0)
    stop = 0;
  __syncthreads();
  if (threadIdx.x >= waiters) {
    u64 total = 0;
    if (p.slotBytes != 0)
      total = streamBeside(reinterpret_cast<const u8 *>(p.stream) +
                               blockIdx.x * p.streamBytes,
                           p.streamBytes, u32(p.slotBytes), slots, barriers,
                           &stop);
    if (threadIdx.x == waiters)
      reinterpret_cast<u64 *>(p.streamed)[blockIdx.x] = total;
    return;
  }
  u32 *counter = reinterpret_cast<u32 *>(p.counters);
  u32 *own = counter + 32 * (1 + blockIdx.x / kGroup);
  const u32 members = min(kGroup, gridDim.x - blockIdx.x / kGroup * kGroup);
  const u32 words = u32(p.wordCount);
  for (u32 round = 0; round < u32(p.rounds); ++round) {
    uint4 *half =
        reinterpret_cast<uint4 *>(p.words) + u64(round % 2) * words;
    if (p.mode == kEdge || p.mode == kFlagged)
      for (u32 w = blockIdx.x + threadIdx.x * gridDim.x; w < words;
           w += waiters * gridDim.x)
        asm volatile("st.volatile.global.v4.u32 [%0], {%1, %2, %3, %4};"
                     :
                     : "l"(half + w), "r"(w), "r"(w), "r"(w), "r"(round + 1)
                     : "memory");
    syncWaiters();
    if (threadIdx.x == 0) {
      if (p.mode == kCounter) {
        arrive(own);
        awaitCount(own, (round + 1) * members);
      } else if (p.mode != kFlagged) {
        arrive(counter);
        awaitCount(counter, (round + 1) * gridDim.x);
      }
    }
    if (p.mode == kEdge || p.mode == kFlagged) {
      if (p.mode == kEdge)
        syncWaiters();
      for (u32 w = threadIdx.x; w < words; w += waiters) {
        uint4 v;
        do {
          asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                       : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                       : "l"(half + w)
                       : "memory");
        } while (p.mode == kFlagged && v.w != round + 1);
        vector[w] = v;
      }
    }
    syncWaiters();
  }
  if (threadIdx.x == 0)
    *const_cast<volatile u32 *>(&stop) = 1;
}

/// CTA 0 and CTA `partner` answer each other `rounds` times: half a round is
/// what a flag takes from one SM to another. Zeroed counters.
extern "C" __global__ void bench_flag(u32 *counters, u64 partner, u64 rounds) {
  if (threadIdx.x != 0)
    return;
  u32 *ping = counters, *pong = counters + 32;
  for (u32 round = 1; round <= u32(rounds); ++round) {
    if (blockIdx.x == 0) {
      arrive(ping);
      awaitCount(pong, round);
    } else if (blockIdx.x == partner) {
      awaitCount(ping, round);
      arrive(pong);
    }
  }
}
