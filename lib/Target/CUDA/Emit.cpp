// SPDX-License-Identifier: Apache-2.0
/// \file
/// The emitted file as a whole. Contract: the IR is only read; facts come from
/// KernelModel, names from Names; the order of everything is the order in the
/// IR, so the same kernel gives the same bytes.

#include "mega/Target/CUDA/Emit.h"
#include "KernelModel.h"
#include "Names.h"
#include "StageEmitter.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/Support/FormatVariadic.h"

#include <string_view>
#include <utility>
#include <vector>

using namespace mlir;
using namespace mega;

namespace mega::detail {
/// The device building blocks, embedded by CMake in include order; names have
/// the folder, as in ptx/bf16.cuh.
std::vector<std::pair<std::string_view, std::string_view>> deviceFiles();
} // namespace mega::detail

/// The building blocks without their license lines and file comments' fences.
static void emitDeviceCode(llvm::raw_ostream &os) {
  // Idioms, the folder ptx, come first; a host that brings its own
  // versions of those defines MEGA_HOST_IDIOMS and compiles the rest as it is.
  bool inIdioms = true;
  os << "#ifndef MEGA_HOST_IDIOMS\n";
  for (auto [name, text] : mega::detail::deviceFiles()) {
    StringRef rest(text.data(), text.size());
    auto [folder, file] = StringRef(name.data(), name.size()).split('/');
    if (inIdioms && folder != "ptx") {
      os << "#endif // MEGA_HOST_IDIOMS\n\n";
      inIdioms = false;
    }
    os << "//===----- " << file << " -----===//\n\n";
    while (!rest.empty()) {
      auto [line, tail] = rest.split('\n');
      rest = tail;
      if (line.contains("SPDX-License-Identifier") || line == "/// \\file")
        continue;
      os << line << '\n';
    }
    os << '\n';
  }
}

static void emitParameters(KernelOp kernel, llvm::raw_ostream &os) {
  SmallVector<StateOp> states = kernelStates(kernel);
  os << "/// The kernel's one parameter; the runtime fills it in "
        "(mega_kernel_header).\n"
     << "struct Params {\n"
     << "  const void *input;\n  void *output;\n"
     << "  const mega::u8 *weights;\n  mega::u8 *workspace;\n"
     << "  long long position; ///< rows in every cache before this step\n";
  if (!states.empty())
    os << "  void *state[" << states.size() << "];\n";
  os << "};\n\n";
  for (auto [index, state] : llvm::enumerate(states))
    os << "// state[" << index << "]: " << toComment(state.getSymName()) << ", "
       << state.getType() << "\n";
  os << "\n";
}

static void emitRopeTables(KernelOp kernel, llvm::raw_ostream &os) {
  llvm::SetVector<StringAttr> seen;
  kernel.walk([&](RopeOp rope) {
    auto name = StringAttr::get(kernel.getContext(), ropeTableName(rope));
    if (rope.getKind() == RopeKind::None || !seen.insert(name))
      return;
    os << "/// theta^(-2i/" << rope.getSize() << ")\n"
       << ropeTableDefinition(rope) << "\n";
  });
}

namespace {

/// Code that one or more stages run, each with its own arguments.
struct StageKind {
  std::string name; ///< after the first stage of the kind
  std::string body; ///< statements
  SmallVector<PhaseArguments> instances;
};

/// Emits the stages of a kernel, each distinct one once, as a function of its
/// own: registers are then shared out stage by stage, and nothing that one
/// stage computes is kept from another's.
class StageList {
public:
  StageList(const KernelModel &model, const EmitterOptions &options)
      : model(model), options(options) {}

  LogicalResult add(PhaseOp phase, bool last, EmittedKernel &result);
  /// Decides where the tables lie: behind `offset` bytes of shared memory.
  /// Comes after the last add.
  void place(int64_t offset) { tables = llvm::alignTo(offset, 16); }
  void emitKinds(llvm::raw_ostream &os) const;
  void emitOperands(llvm::raw_ostream &os) const;
  void emitShares(llvm::raw_ostream &os) const {
    if (!shares.empty())
      shares.emit(os);
  }
  /// Copies the tables and the parameters to shared memory, where stages read
  /// them: constant memory is cold at each stage's first access.
  void emitTableCopies(llvm::raw_ostream &os) const;
  /// The end of the tables in shared memory.
  int64_t sharedEnd() const { return barrierOffset() + 8; }
  /// Calls the stages in order.
  void emitSchedule(llvm::raw_ostream &os) const;

private:
  /// A stage: which kind, which of its instances, in which phase.
  struct Entry {
    size_t kind, instance;
    int64_t phase, number; ///< the stage's number in its phase
    std::string comment;
  };

  /// Names of one length: the tool chain places functions in the order of their
  /// names, the shorter ones first, and code is fetched soonest where stages
  /// that follow one another lie so.
  std::string nameOf(const StageKind &kind) const {
    size_t length = 0;
    for (const StageKind &other : kinds)
      length = std::max(length, other.name.size());
    return kind.name + std::string(length - kind.name.size(), '_');
  }
  static int64_t argumentBytes(const StageKind &kind) {
    return std::max<int64_t>(kind.instances.front().getArguments().size(), 1) *
           8;
  }
  int64_t parameterBytes() const {
    return 8 * (5 + kernelStates(model.getKernel()).size());
  }
  int64_t parameterOffset() const { return tables; }
  /// Where a kind's first arguments lie.
  int64_t argumentOffset(size_t kind) const {
    int64_t offset = parameterOffset() + parameterBytes();
    for (const StageKind &earlier : ArrayRef(kinds).take_front(kind))
      offset += earlier.instances.size() * argumentBytes(earlier);
    return offset;
  }
  int64_t rangeOffset() const { return argumentOffset(kinds.size()); }
  /// Where the grid barrier keeps a word.
  int64_t barrierOffset() const { return rangeOffset() + shares.bytes(); }

  const KernelModel &model;
  const EmitterOptions &options;
  std::vector<StageKind> kinds;
  SmallVector<Entry> entries;
  ShareTable shares;
  int64_t tables = 0;
};

} // namespace

LogicalResult StageList::add(PhaseOp phase, bool last, EmittedKernel &result) {
  int64_t weightBytes = 0;
  auto stages = llvm::to_vector(phase.getBody().getOps<StageOp>());
  std::string stamps =
      "(p.workspace + " +
      std::to_string(KernelOp(model.getKernel()).getWorkspaceBytes()) +
      ", phase);";
  for (auto [number, stage] : llvm::enumerate(stages)) {
    StageFrame frame;
    frame.early = options.prefetchWeights;
    if (number == 0) {
      if (phase.getIndex() != 0)
        frame.ready = "barrier.wait();";
      if (options.instrument)
        frame.ready += " mega::stampBegin" + stamps;
    }
    if (number + 1 != stages.size()) {
      frame.end = "  __syncthreads(); // shared memory changes hands\n";
    } else {
      if (options.instrument)
        frame.end += "  mega::stampEnd" + stamps + "\n";
      if (!last)
        frame.end += "  barrier.arrive();\n";
    }
    PhaseArguments arguments;
    std::string body;
    llvm::raw_string_ostream os(body);
    if (number == 0)
      for (ResetOp reset : phase.getBody().getOps<ResetOp>()) {
        auto counters = reset.getCounters().getDefiningOp<CountersOp>();
        // Others may still wait for what is reset.
        if (!frame.ready.empty())
          os << "  " << std::exchange(frame.ready, {}) << "\n";
        os << "  if (blockIdx.x == 0)\n    for (int i = threadIdx.x; i < "
           << counters.getCount() << "; i += " << model.threads()
           << ")\n      mega::Counter::reset(reinterpret_cast<mega::u32 *>("
           << arguments.add(counters.getName(), PhaseArguments::From::Workspace,
                            *counters.getOffset())
           << ") + i * " << kCounterStride / 4 << ");\n";
      }
    StageEmitter emitter(model, arguments, shares, frame, os);
    if (failed(emitter.emit(stage)))
      return failure();
    std::string location = describeLocation(stage.getLoc());
    std::string comment = toComment(stage.getName()) +
                          (location.empty() ? "" : " (" + location + ")");
    result.sharedBytes = std::max(result.sharedBytes, emitter.getSharedBytes());
    weightBytes += emitter.getWeightBytes();

    size_t kind = 0;
    while (kind < kinds.size() && kinds[kind].body != body)
      ++kind;
    if (kind == kinds.size())
      kinds.push_back({llvm::formatv("stage_{0,0+2}_{1}", entries.size(),
                                     toIdentifier(stage.getName()))
                           .str(),
                       body,
                       {}});
    entries.push_back({kind, kinds[kind].instances.size(),
                       int64_t(phase.getIndex()), int64_t(number), comment});
    kinds[kind].instances.push_back(std::move(arguments));
  }
  result.phaseBytes.push_back(weightBytes);
  return success();
}

void StageList::emitKinds(llvm::raw_ostream &os) const {
  for (auto [index, kind] : llvm::enumerate(kinds)) {
    os << "/// Where the operands of " << kind.name << " lie.\n"
       << "struct Arguments" << index << " {\n  mega::u8 ";
    ArrayRef<PhaseArguments::Argument> fields =
        kind.instances.front().getArguments();
    for (auto [number, argument] : llvm::enumerate(fields))
      os << (number ? ", *" : "*") << argument.field;
    if (fields.empty())
      os << "*unused";
    os << ";\n};\n\n";
    for (const Entry &entry : entries)
      if (entry.kind == index)
        os << "/// " << entry.comment << "\n";
    os << "static __device__ __noinline__ mega::u32 " << nameOf(kind)
       << "(int arguments, mega::u32 bursts"
       << (options.instrument ? ", int phase" : "") << ") {\n"
       << llvm::formatv(
              "  extern __shared__ __align__(128) mega::u8 shared[];\n"
              "  const Params &p = *reinterpret_cast<const Params "
              "*>(shared + {0});\n"
              "  [[maybe_unused]] const Arguments{1} &a = "
              "*reinterpret_cast<const Arguments{1} *>(shared + arguments);\n"
              "  [[maybe_unused]] const auto *const ranges = "
              "reinterpret_cast<const mega::Range *>(shared + {2});\n"
              "  [[maybe_unused]] const mega::GridBarrier "
              "barrier(p.workspace, shared + {3});\n"
              "  Ring ring;\n  ring.attach(shared, bursts);\n",
              parameterOffset(), index, rangeOffset(), barrierOffset())
       << kind.body << "  return ring.taken;\n}\n\n";
  }
}

void StageList::emitOperands(llvm::raw_ostream &os) const {
  static constexpr llvm::StringLiteral makers[] = {"inWorkspace", "inWeights",
                                                   "inState"};
  os << "/// Where operands lie: the arguments of each kind of stage, one set "
        "after the\n/// other.\n"
        "__device__ const mega::Operand kOperands[] = {\n";
  for (auto [index, kind] : llvm::enumerate(kinds)) {
    os << "    // Arguments" << index << "\n";
    for (const PhaseArguments &instance : kind.instances) {
      for (const PhaseArguments::Argument &argument : instance.getArguments())
        os << "    mega::" << makers[size_t(argument.from)] << "("
           << argument.value << "), // " << toComment(argument.what) << "\n";
      if (instance.getArguments().empty())
        os << "    {}, // unused\n";
    }
  }
  os << "};\n\n";
}

void StageList::emitTableCopies(llvm::raw_ostream &os) const {
  bool states = !kernelStates(model.getKernel()).empty();
  os << "  static_assert(sizeof(Params) == " << parameterBytes()
     << ", \"shared-memory plan\");\n"
     << "  if (threadIdx.x == 0)\n    *reinterpret_cast<Params *>(shared + "
     << parameterOffset() << ") = p;\n"
     << "  mega::resolveOperands(shared + " << argumentOffset(0)
     << ", kOperands, p.workspace, p.weights,\n      [&](int"
     << (states ? " i) -> void * { return p.state[i]; });\n"
                : ") -> void * { return nullptr; });\n");
  if (!shares.empty())
    os << "  mega::shareOut(reinterpret_cast<mega::Range *>(shared + "
       << rangeOffset() << "), kShares);\n";
}

void StageList::emitSchedule(llvm::raw_ostream &os) const {
  os << "  mega::u32 bursts = 0;\n";
  auto entry = entries.begin();
  for (Operation &op : KernelOp(model.getKernel()).getBody().front()) {
    if (auto barrier = dyn_cast<GridBarrierOp>(op))
      for (auto reason : barrier.getCovers().getAsRange<StringAttr>())
        os << "  // barrier: " << toComment(reason.getValue()) << "\n";
    auto phase = dyn_cast<PhaseOp>(op);
    if (!phase)
      continue;
    os << "  mega::atPhase(" << phase.getIndex() << ");\n";
    for (; entry != entries.end() && entry->phase == int64_t(phase.getIndex());
         ++entry)
      os << "  // " << entry->comment << "\n  mega::atStage(" << entry->number
         << ");\n  bursts = " << nameOf(kinds[entry->kind]) << "("
         << argumentOffset(entry->kind) +
                int64_t(entry->instance) * argumentBytes(kinds[entry->kind])
         << ", bursts" << (options.instrument ? ", " : "")
         << (options.instrument ? std::to_string(entry->phase) : "") << ");\n";
  }
}

/// Emits with one shape of the ring.
static FailureOr<EmittedKernel> emitWith(RingShape ring, KernelOp kernel,
                                         const EmitterOptions &options) {
  KernelModel model(kernel, ring);
  EmittedKernel result;
  result.entry = "megalith_" + toIdentifier(kernel.getSymName());
  StageList stages(model, options);
  auto phases = llvm::to_vector(kernel.getBody().getOps<PhaseOp>());
  for (PhaseOp phase : phases)
    if (failed(stages.add(phase, phase == phases.back(), result)))
      return failure();
  stages.place(result.sharedBytes);
  result.sharedBytes = stages.sharedEnd();
  if (options.instrument)
    result.stampBytes =
        result.phaseBytes.size() * model.getTarget().getCtas() * 8;

  llvm::raw_string_ostream os(result.source);
  os << "// One decode step of '" << toComment(kernel.getSymName())
     << "' as one cooperative kernel, written by megalithc.\n"
     << "//\n// Launch: one CTA of " << model.threads()
     << " threads per SM, all co-resident, at most "
     << model.getTarget().getCtas() << " CTAs.\n"
     << "// Compiles alone: nvcc -std=c++17 -arch="
     << model.getTarget().getArch() << " -cubin kernel.cu\n\n";
  emitDeviceCode(os);
  emitParameters(kernel, os);
  emitRopeTables(kernel, os);
  os << "/// Weights on their way to a warp: " << ring.slots << " copies of "
     << ring.units << " units.\nusing Ring = mega::UnitRing<" << ring.slots
     << ", " << ring.units << ", " << model.ringUnitBytes() << ", "
     << model.threads() / 32 << ">;\n\n";
  stages.emitKinds(os);
  stages.emitOperands(os);
  stages.emitShares(os);
  os << "extern \"C\" __global__ void __launch_bounds__(" << model.threads()
     << ", 1)\n"
     << result.entry << "(const __grid_constant__ Params p) {\n"
     << "  extern __shared__ __align__(128) mega::u8 shared[];\n"
     << "  Ring ring;\n  ring.init(shared);\n";
  stages.emitTableCopies(os);
  os << "  __syncthreads();\n";
  stages.emitSchedule(os);
  os << "}\n";
  return result;
}

FailureOr<EmittedKernel> mega::emitCuda(KernelOp kernel,
                                        const EmitterOptions &options) {
  // Measured: one burst of two units a warp keeps memory busy, and more on its
  // way makes everything else wait (docs/performance.md).
  int64_t room = kernel.getTarget().getSharedBytes(), least = 0;
  SmallVector<RingShape> shapes = {{1, 2}, {1, 1}};
  if (options.ring)
    shapes = {*options.ring};
  for (RingShape ring : shapes) {
    FailureOr<EmittedKernel> result = emitWith(ring, kernel, options);
    if (failed(result) || result->sharedBytes <= room)
      return result;
    least = result->sharedBytes;
  }
  return emitError(kernel.getLoc())
         << "kernel '" << kernel.getSymName() << "' needs " << least
         << " bytes of shared memory, expected at most the target's " << room;
}
