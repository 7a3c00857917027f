// SPDX-License-Identifier: Apache-2.0
/// \file
/// Every idiom of runtime/device/ptx, and the CUDA functions that kernels call
/// beside them, on inputs of the caller's. Stands behind the idioms' text and
/// the constants of test/Sim/IdiomSections.cpp: kIn* and kOut* are places in
/// the input and the output, in words.

using namespace mega;

struct Params {
  const u32 *input;
  u32 *output;
  const u8 *weights;
  u8 *workspace;
  long long position; ///< the launch's number
};

constexpr int kThreads = 128, kCtas = 4, kAll = kThreads * kCtas;
using Ring = UnitRing<2, 2, 64, kThreads / 32>;

static __device__ u32 bits(float value) { return __float_as_uint(value); }
static __device__ float number(u32 bits) { return __uint_as_float(bits); }

/// Conversions and packed arithmetic.
static __device__ void bf16(const u32 *in, u32 *out, int id) {
  for (int i = id; i < kValues; i += kAll) {
    const u32 a = in[kInPairs + i], b = in[kInPairs + (i * 7 + 1) % kValues];
    const float value = number(in[kInFloats + i]);
    out[kOutWiden + i] = bits(bf16ToFloat(u16(a)));
    out[kOutRound + i] = floatToBf16(value);
    out[kOutRoundBf16 + i] = bits(roundBf16(value));
    out[kOutPack + i] =
        packBf16x2(value, number(in[kInFloats + (i * 7 + 1) % kValues]));
    out[kOutSub + i] = subBf16x2(a, b);
    out[kOutMul + i] = mulBf16x2(a, b);
    out[kOutMulTiny + i] =
        mulBf16x2(in[kInTiny + i], in[kInTiny + (i * 7 + 1) % kValues]);
    out[kOutLow + i] = broadcastLow(a);
    out[kOutHigh + i] = broadcastHigh(a);
  }
}

/// Quotients below 2^20, and those of multiples and their neighbours.
static __device__ void division(const u32 *in, u32 *out, int id) {
  for (int i = id; i < kValues; i += kAll) {
    const u32 n = in[kInPairs + i], d = in[kInTiny + i] % 1000 + 1;
    const u32 limit = min(d << 20, 0xffffffffu / 2) - 1;
    out[kOutDivide + i * 2] = divide(n % limit, d);
    out[kOutDivide + i * 2 + 1] =
        divide(n % (limit / d) * d + d * (i % 2) - i % 2, d);
  }
}

/// One mma a warp: a lane's words are its fragments.
static __device__ void mma(const u32 *matrix, const u32 *sums, u32 *out,
                           int id) {
  float d[4];
  for (int i = 0; i < 4; ++i)
    d[i] = number(sums[id * 4 + i]);
  const u32 *own = matrix + id * 6;
  MmaM16N8K16Bf16::run(d, own[0], own[1], own[2], own[3], own[4], own[5]);
  for (int i = 0; i < 4; ++i)
    out[id * 4 + i] = bits(d[i]);
}

/// Rows of a warp's own, in an order of their own.
static __device__ void ldmatrix(const u32 *in, u32 *out, u8 *shared, int id) {
  u8 *const rows = shared + threadIdx.x / 32 * 512;
  const int lane = threadIdx.x % 32;
  for (int i = 0; i < 4; ++i)
    reinterpret_cast<u32 *>(rows)[lane * 4 + i] = in[kInWords + id * 4 + i];
  __syncwarp();
  const u8 *const row = rows + (lane * 5 + 3) % 32 * 16;
  u32 plain[4], transposed[4];
  LdmatrixX4::run(plain, row);
  LdmatrixX4Trans::run(transposed, row);
  for (int i = 0; i < 4; ++i) {
    out[kOutLdmatrix + id * 8 + i] = plain[i];
    out[kOutLdmatrix + id * 8 + 4 + i] = transposed[i];
  }
}

/// Three groups of a thread's own, of one, two and no copies, and what the next
/// thread copied.
static __device__ void copies(const u32 *in, u32 *out, u8 *shared, int id) {
  u32 *const own = reinterpret_cast<u32 *>(shared) + threadIdx.x * 4;
  u32 *const second = own + kThreads * 4;
  const int lane = laneId();
  __syncthreads();
  CpAsync::copy16(own, in + kInWords + id * 4);
  CpAsync::commit();
  if (lane % 3 != 0)
    CpAsync::copy16(second, in + kInPlain + id / 4 * 4);
  CpAsync::commit();
  CpAsync::wait<1>();
  out[kOutCopies + id * 3] = own[lane % 4];
  CpAsync::commit();
  CpAsync::wait<0>();
  out[kOutCopies + id * 3 + 1] = lane % 3 != 0 ? second[lane % 4] : 0;
  __syncthreads();
  out[kOutCopies + id * 3 + 2] =
      reinterpret_cast<u32 *>(shared)[(threadIdx.x + 33) % kThreads * 4];
  __syncthreads();
}

static __device__ void put4(u32 *out, uint4 v) {
  out[0] = v.x;
  out[1] = v.y;
  out[2] = v.z;
  out[3] = v.w;
}

static __device__ void constants(const u32 *in, u32 *out, int id) {
  const u32 *const words = in + kInWords;
  u32 *const own = out + kOutConstants + id * 12;
  put4(own, loadConstant16(words + id * 4 % kValues));
  const uint2 two = loadConstant8(words + id * 2);
  own[4] = two.x;
  own[5] = two.y;
  own[6] = loadConstantBf16(reinterpret_cast<const u16 *>(words) + id);
  own[7] = bits(loadConstantFloat(reinterpret_cast<const float *>(words) + id));
  put4(own + 8, loadConstantPacked(words + kValues - 4 - id * 4 % kValues));
}

/// Both halves; only one thread looks at the word.
static __device__ void gridBarrier(u8 *counter) {
  u32 before;
  const GridBarrier barrier(counter, reinterpret_cast<u8 *>(&before));
  barrier.arrive();
  barrier.wait();
}

/// What another CTA wrote before a grid barrier.
static __device__ void others(const u32 *in, u32 *out, u8 *workspace, int id) {
  u32 *const mine = reinterpret_cast<u32 *>(workspace + 256);
  for (int i = 0; i < 4; ++i)
    mine[id * 4 + i] = in[kInWords + (id * 4 + i) % kValues];
  gridBarrier(workspace);
  u32 *const own = out + kOutOthers + id * 11;
  const u32 *const other = mine + (id + kThreads) % kAll * 4;
  put4(own, loadShared16(other));
  const float4 four = loadSharedFloat4(reinterpret_cast<const float *>(mine) +
                                       (id + 2 * kThreads) % kAll * 4);
  own[4] = bits(four.x);
  own[5] = bits(four.y);
  own[6] = bits(four.z);
  own[7] = bits(four.w);
  own[8] = bits(loadSharedFloat(reinterpret_cast<const float *>(other) + 1));
  own[9] = loadSharedBf16(reinterpret_cast<const u16 *>(other) + 5);
  own[10] = u32(loadSharedInt(reinterpret_cast<const int *>(other) + 3));
}

static __device__ u32 *counterOf(u8 *workspace, int cta) {
  return reinterpret_cast<u32 *>(workspace + 24576) + cta * 32;
}

/// What the next CTA signals, without a barrier for all.
static __device__ void counter(const u32 *in, u32 *out, u8 *workspace, int id) {
  int *const words = reinterpret_cast<int *>(workspace + 25600);
  words[id] = int(in[kInWords + id] + 1);
  __syncthreads();
  if (threadIdx.x == 0)
    Counter::add(counterOf(workspace, blockIdx.x), 3);
  const int other = int(blockIdx.x + 1) % kCtas;
  Counter::wait(counterOf(workspace, other), 3);
  out[kOutCounter + id] =
      u32(loadSharedInt(words + other * kThreads + int(threadIdx.x)));
}

/// Rounds of one word a CTA; an odd number, so that the counter's top bit
/// differs from launch to launch.
static __device__ void barrier(const u32 *in, u32 *out, u8 *workspace, int id) {
  int *const words = reinterpret_cast<int *>(workspace + 16384);
  u32 sum = 0;
  for (int round = 0; round < 4; ++round) {
    atPhase(round);
    atStage(0);
    if (threadIdx.x == 0)
      words[blockIdx.x] = int(in[kInWords + round * kCtas + blockIdx.x]);
    gridBarrier(workspace);
    for (int cta = 0; cta < kCtas; ++cta)
      sum = sum * 31 + u32(loadSharedInt(words + cta));
    gridBarrier(workspace);
  }
  out[kOutBarrier + id] = sum;
}

/// Bursts of all sizes through every slot, several times.
static __device__ void stream(Ring &ring, const u32 *in, u32 *out, int id) {
  constexpr int kBursts = 7;
  const int warp = id / 32, lane = threadIdx.x % 32;
  auto issue = [&](int burst) {
    ring.issue(reinterpret_cast<const u8 *>(in + kInWords) +
                   (warp * 13 + burst * 7) * 16,
               32 + 16 * burst % 112);
  };
  u32 sum = 0, pending = 0;
  for (int burst = 0; burst < Ring::kDepth; ++burst)
    issue(burst);
  for (int burst = 0; burst < kBursts; ++burst) {
    atTile(burst);
    pending = pending * 4 + u32(ring.pending());
    const u32 *words = reinterpret_cast<const u32 *>(ring.wait());
    sum = sum * 31 + words[lane % ((32 + 16 * burst % 112) / 4)];
    ring.release();
    if (burst + Ring::kDepth < kBursts)
      issue(burst + Ring::kDepth);
  }
  out[kOutStream + id * 2] = sum;
  out[kOutStream + id * 2 + 1] = pending;
}

/// The ring's slots lent to ordinary accesses, and taken up again.
static __device__ void lend(Ring &ring, const u32 *in, u32 *out, u8 *shared,
                            int id) {
  u32 *const slots = reinterpret_cast<u32 *>(shared + Ring::kBarrierBytes);
  __syncthreads();
  slots[threadIdx.x] = in[kInWords + id];
  slots[threadIdx.x + kThreads] = ~in[kInWords + id];
  __syncthreads();
  out[kOutLend + id * 2] = slots[255 - threadIdx.x];
  fenceAsyncProxy();
  __syncthreads();
  const u32 bursts = ring.taken;
  ring.attach(shared, bursts);
  ring.issue(reinterpret_cast<const u8 *>(in + kInWords) + id / 32 * 128, 128);
  out[kOutLend + id * 2 + 1] =
      reinterpret_cast<const u32 *>(ring.wait())[31 - threadIdx.x % 32];
  ring.release();
}

/// Which words the stamps of phase 1 write.
static __device__ void stamps(u32 *out, u8 *workspace) {
  u8 *const at = workspace + 20480;
  const u32 pattern = 0xdeadbeefu;
  u32 *const words = reinterpret_cast<u32 *>(at);
  const int first = blockIdx.x * 2, second = (gridDim.x + blockIdx.x) * 2;
  if (threadIdx.x == 0)
    words[first] = words[first + 1] = words[second] = words[second + 1] =
        pattern;
  stampBegin(at, 1);
  const u32 now = clockLow();
  stampEnd(at, 1);
  if (threadIdx.x == 0) {
    u32 *const own = out + kOutStamps + blockIdx.x * 5;
    own[0] = words[first] != pattern;
    own[1] = words[first + 1] != pattern;
    own[2] = words[second] != pattern;
    own[3] = words[second + 1] != pattern;
    own[4] = now != pattern;
  }
}

/// CUDA's own functions: what is exact, then what is within a bound.
static __device__ void language(const u32 *in, u32 *out, int id) {
  const u32 full = 0xffffffffu;
  const u32 word = in[kInWords + id], next = in[kInWords + id + kAll];
  const int lane = threadIdx.x % 32;
  u32 *own = out + kOutLanguage + id * kLanguage;
  *own++ = __shfl_sync(full, word, lane * 7 + 3);
  *own++ = __shfl_sync(full, word, 5, 8);
  *own++ = __shfl_up_sync(full, word, 3);
  *own++ = __shfl_up_sync(full, word, 3, 8);
  *own++ = __shfl_down_sync(full, word, 5);
  *own++ = __shfl_down_sync(full, word, 2, 16);
  *own++ = __shfl_xor_sync(full, word, 9);
  *own++ = u32(__shfl_down_sync(full, double(word), 1));
  *own++ = __ballot_sync(full, word & 1);
  *own++ = __any_sync(full, word % 61 == 0);
  *own++ = __all_sync(full, word % 61 != 0);
  *own++ = u32(__popc(word));
  *own++ = u32(__ffs(int(word & ~255u)));
  *own++ = u32(__clz(int(word >> lane)));
  *own++ = __byte_perm(word, next, 0x5216);
  *own++ = u32(min(int(word), int(next)));
  *own++ = max(word, next);
  const float a = number(in[kInPlain + id]);
  const float b = number(in[kInPlain + kAll + id]);
  const float c = number(in[kInPlain + 2 * kAll + id]);
  *own++ = bits(__fadd_rn(a, b));
  *own++ = bits(__fmul_rn(a, b));
  *own++ = bits(a / b);
  *own++ = bits(fmaf(a, b, c));
  *own++ = bits(sqrtf(fabsf(a)));
  *own++ = bits(fmaxf(a, fminf(b, c)));
  *own++ = bits(float(fma(double(a), double(b), double(c))));
  *own++ = bits(float(rint(double(a) * 100)));
  own = out + kOutFunctions + id * kFunctions;
  *own++ = bits(expf(a * 10));
  *own++ = bits(float(exp(double(a * 10))));
  *own++ = bits(tanhf(a));
  *own++ = bits(log1pf(fabsf(a)));
  *own++ = bits(rsqrtf(fabsf(a)));
}

extern "C" __global__ void __launch_bounds__(kThreads, 1)
    idioms(const Params p) {
  extern __shared__ __align__(128) mega::u8 shared[];
  const u32 *const in = p.input;
  u32 *const out = p.output;
  const int id = int(blockIdx.x) * kThreads + int(threadIdx.x);
  Ring ring;
  ring.init(shared);
  __syncthreads();
  bf16(in, out, id);
  division(in, out, id);
  mma(in + kInWhole, in + kInWholeSums, out + kOutMmaWhole, id);
  mma(in + kInUnit, in + kInUnitSums, out + kOutMmaUnit, id);
  mma(in + kInEdge, in + kInEdgeSums, out + kOutMmaEdge, id);
  ldmatrix(in, out, shared + 2048, id);
  copies(in, out, shared + 4096, id);
  constants(in, out, id);
  others(in, out, p.workspace, id);
  counter(in, out, p.workspace, id);
  barrier(in, out, p.workspace, id);
  if (id < kCtas)
    Counter::reset(counterOf(p.workspace, id));
  stream(ring, in, out, id);
  lend(ring, in, out, shared, id);
  stamps(out, p.workspace);
  language(in, out, id);
}
