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
  std::string name;     ///< after the first stage of the kind
  std::string body;     ///< statements
  std::string prefetch; ///< statements that ask L2 for rows; may be empty
  SmallVector<PhaseArguments> instances;
};

/// Emits the stages of a kernel, each distinct one once, as a function of its
/// own: registers are then shared out stage by stage, and nothing that one
/// stage computes is kept from another's.
class StageList {
public:
  explicit StageList(const KernelModel &model) : model(model) {}

  LogicalResult add(PhaseOp phase, EmittedKernel &result);
  /// Decides where the tables lie: behind `offset` bytes of shared memory.
  /// Comes after the last add.
  void place(int64_t offset) { tables = llvm::alignTo(offset, 16); }
  void emitKinds(llvm::raw_ostream &os, bool prefetch) const;
  void emitSchedule(llvm::raw_ostream &os) const;
  /// Copies the tables and the parameters to shared memory, where stages read
  /// them: constant memory is cold at each stage's first access.
  void emitTableCopies(llvm::raw_ostream &os) const;
  /// The end of the tables in shared memory.
  int64_t sharedEnd() const { return argumentOffset(kinds.size()); }
  void emitLoop(const EmitterOptions &options, llvm::raw_ostream &os) const;

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
  int64_t stageOffset() const {
    return llvm::alignTo(parameterOffset() + parameterBytes(), kEntryBytes);
  }
  /// Where a kind's first arguments lie.
  int64_t argumentOffset(size_t kind) const {
    int64_t offset = stageOffset() + entries.size() * kEntryBytes;
    for (const StageKind &earlier : ArrayRef(kinds).take_front(kind))
      offset += earlier.instances.size() * argumentBytes(earlier);
    return offset;
  }
  /// sizeof(Stage) in the text.
  static constexpr int64_t kEntryBytes = 16;

  const KernelModel &model;
  std::vector<StageKind> kinds;
  SmallVector<Entry> entries;
  int64_t tables = 0;
};

} // namespace

LogicalResult StageList::add(PhaseOp phase, EmittedKernel &result) {
  int64_t weightBytes = 0;
  auto stages = llvm::to_vector(phase.getBody().getOps<StageOp>());
  for (auto [number, stage] : llvm::enumerate(stages)) {
    PhaseArguments arguments;
    std::string body, prefetch;
    llvm::raw_string_ostream os(body), prefetchOs(prefetch);
    if (number == 0)
      for (ResetOp reset : phase.getBody().getOps<ResetOp>()) {
        auto counters = reset.getCounters().getDefiningOp<CountersOp>();
        os << "  if (blockIdx.x == 0)\n    for (int i = threadIdx.x; i < "
           << counters.getCount() << "; i += " << model.threads()
           << ")\n      mega::Counter::reset(reinterpret_cast<mega::u32 *>("
              "p.workspace + "
           << arguments.add(counters.getName(), *counters.getOffset())
           << ") + i * " << kCounterStride / 4 << ");\n";
      }
    StageEmitter emitter(model, arguments, os);
    if (failed(emitter.emit(stage)))
      return failure();
    StageEmitter(model, arguments, prefetchOs).emitRowPrefetch(stage);
    std::string location = describeLocation(stage.getLoc());
    std::string comment = toComment(stage.getName()) +
                          (location.empty() ? "" : " (" + location + ")");
    result.sharedBytes = std::max(result.sharedBytes, emitter.getSharedBytes());
    weightBytes += emitter.getWeightBytes();

    size_t kind = 0;
    while (kind < kinds.size() &&
           (kinds[kind].body != body || kinds[kind].prefetch != prefetch))
      ++kind;
    if (kind == kinds.size())
      kinds.push_back({llvm::formatv("stage_{0,0+2}_{1}", entries.size(),
                                     toIdentifier(stage.getName()))
                           .str(),
                       body,
                       prefetch,
                       {}});
    entries.push_back({kind, kinds[kind].instances.size(),
                       int64_t(phase.getIndex()), int64_t(number), comment});
    kinds[kind].instances.push_back(std::move(arguments));
  }
  result.phaseBytes.push_back(weightBytes);
  return success();
}

void StageList::emitKinds(llvm::raw_ostream &os, bool prefetch) const {
  for (auto [index, kind] : llvm::enumerate(kinds)) {
    os << "/// Where the operands of " << kind.name << " lie.\n"
       << "struct Arguments" << index << " {\n  mega::u64 ";
    for (auto [number, argument] :
         llvm::enumerate(kind.instances.front().getArguments()))
      os << (number ? ", " : "") << argument.field;
    if (kind.instances.front().getArguments().empty())
      os << "unused";
    os << ";\n};\n__device__ const Arguments" << index << " kArguments" << index
       << "[] = {\n";
    for (const PhaseArguments &instance : kind.instances) {
      os << "    {\n";
      for (const PhaseArguments::Argument &argument : instance.getArguments())
        os << "        " << argument.value << ", // "
           << toComment(argument.what) << "\n";
      os << "    },\n";
    }
    os << "};\n\n";
    for (const Entry &entry : entries)
      if (entry.kind == index)
        os << "/// " << entry.comment << "\n";
    std::string preamble =
        llvm::formatv("  extern __shared__ __align__(128) mega::u8 shared[];\n"
                      "  const Params &p = *reinterpret_cast<const Params "
                      "*>(shared + {0});\n"
                      "  const Arguments{1} &a = *reinterpret_cast<const "
                      "Arguments{1} *>(shared + arguments);\n",
                      parameterOffset(), index)
            .str();
    os << "static __device__ __noinline__ mega::u32 " << nameOf(kind)
       << "(int arguments, mega::u32 bursts) {\n"
       << preamble << "  Ring ring;\n  ring.attach(shared, bursts);\n"
       << kind.body << "  return ring.taken;\n}\n\n";
    if (prefetch && !kind.prefetch.empty())
      os << "/// Asks L2 for this CTA's rows of plain weights in " << kind.name
         << ".\n"
         << "static __device__ __forceinline__ void prefetch_" << kind.name
         << "(int arguments) {\n"
         << preamble << kind.prefetch << "}\n\n";
  }
}

void StageList::emitSchedule(llvm::raw_ostream &os) const {
  os << "/// Stages in order: whose code, with which arguments, in which "
        "phase. "
        "A grid\n/// barrier stands between phases, for the reasons given.\n"
     << "struct __align__(16) Stage {\n"
     << "  int kind, arguments; ///< number, byte offset in shared memory\n"
     << "  int phase, number;   ///< which stage of which phase\n};\n"
     << "__device__ const Stage kStages[] = {\n";
  auto entry = entries.begin();
  for (Operation &op : KernelOp(model.getKernel()).getBody().front()) {
    if (auto barrier = dyn_cast<GridBarrierOp>(op))
      for (auto reason : barrier.getCovers().getAsRange<StringAttr>())
        os << "    // barrier: " << toComment(reason.getValue()) << "\n";
    auto phase = dyn_cast<PhaseOp>(op);
    if (!phase)
      continue;
    for (; entry != entries.end() && entry->phase == int64_t(phase.getIndex());
         ++entry)
      os << "    {" << entry->kind << ", "
         << argumentOffset(entry->kind) +
                int64_t(entry->instance) * argumentBytes(kinds[entry->kind])
         << ", " << entry->phase << ", " << entry->number << "}, // "
         << entry->comment << "\n";
  }
  os << "};\nstatic_assert(sizeof(kStages) == " << entries.size() * kEntryBytes
     << " && sizeof(Params) == " << parameterBytes()
     << ", \"shared-memory plan\");\n\n";
}

void StageList::emitTableCopies(llvm::raw_ostream &os) const {
  os << "  if (threadIdx.x == 0)\n    *reinterpret_cast<Params *>(shared + "
     << parameterOffset() << ") = p;\n"
     << "  const mega::Table tables[] = {\n      {shared + " << stageOffset()
     << ", kStages, sizeof(kStages)},\n";
  for (size_t kind = 0; kind < kinds.size(); ++kind)
    os << "      {shared + " << argumentOffset(kind) << ", kArguments" << kind
       << ", sizeof(kArguments" << kind << ")},\n";
  os << "  };\n  mega::copyTables(tables);\n";
}

void StageList::emitLoop(const EmitterOptions &options,
                         llvm::raw_ostream &os) const {
  int64_t stamps = KernelOp(model.getKernel()).getWorkspaceBytes();
  bool several = entries.size() != size_t(entries.back().phase) + 1;
  auto stamp = [&](StringRef which, StringRef condition) {
    if (options.instrument)
      os << "    " << (several ? condition : "") << "mega::stamp" << which
         << "(p.workspace + " << stamps << ", stages[stage].phase);\n";
  };
  os << "  const auto *const stages = reinterpret_cast<const Stage *>(shared + "
     << stageOffset() << ");\n  mega::u32 bursts = 0;\n"
     << "#pragma unroll 1\n  for (int stage = 0; stage < " << entries.size()
     << "; ++stage) {\n    mega::atPhase(stages[stage].phase);\n    "
        "mega::atStage(stages[stage].number);\n";
  stamp("Begin", "if (stage == 0 || stages[stage - 1].phase != "
                 "stages[stage].phase)\n      ");
  os << "    const int arguments = stages[stage].arguments;\n"
     << "    switch (stages[stage].kind) {\n";
  for (auto [index, kind] : llvm::enumerate(kinds))
    os << "    case " << index << ":\n      bursts = " << nameOf(kind)
       << "(arguments, bursts);\n      break;\n";
  os << "    }\n";
  if (several && options.instrument)
    os << "    const bool last = stage + 1 == " << entries.size()
       << " || stages[stage + 1].phase != stages[stage].phase;\n";
  stamp("End", "if (last)\n      ");
  os << "    if (stage + 1 == " << entries.size() << ")\n      break;\n";
  bool any = llvm::any_of(
      kinds, [](const StageKind &kind) { return !kind.prefetch.empty(); });
  if (options.prefetchWeights && any) {
    os << "    switch (stages[stage + 1].kind) {\n";
    for (auto [index, kind] : llvm::enumerate(kinds))
      if (!kind.prefetch.empty())
        os << "    case " << index << ":\n      prefetch_" << kind.name
           << "(stages[stage + 1].arguments);\n      break;\n";
    os << "    }\n";
  }
  if (several)
    os << "    if (stages[stage + 1].phase == stages[stage].phase) {\n"
       << "      __syncthreads(); // shared memory changes hands\n"
       << "      continue;\n    }\n";
  os << "    mega::GridBarrier::arriveAndWait("
        "reinterpret_cast<mega::u32 *>(p.workspace));\n  }\n";
}

/// Emits with one shape of the ring.
static FailureOr<EmittedKernel> emitWith(RingShape ring, KernelOp kernel,
                                         const EmitterOptions &options) {
  KernelModel model(kernel, ring);
  EmittedKernel result;
  result.entry = "megalith_" + toIdentifier(kernel.getSymName());
  StageList stages(model);
  for (PhaseOp phase : kernel.getBody().getOps<PhaseOp>())
    if (failed(stages.add(phase, result)))
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
  stages.emitKinds(os, options.prefetchWeights);
  stages.emitSchedule(os);
  os << "extern \"C\" __global__ void __launch_bounds__(" << model.threads()
     << ", 1)\n"
     << result.entry << "(const Params p) {\n"
     << "  extern __shared__ __align__(128) mega::u8 shared[];\n"
     << "  Ring ring;\n  ring.init(shared);\n";
  stages.emitTableCopies(os);
  os << "  __syncthreads();\n";
  stages.emitLoop(options, os);
  os << "}\n";
  return result;
}

FailureOr<EmittedKernel> mega::emitCuda(KernelOp kernel,
                                        const EmitterOptions &options) {
  // The most in flight that shared memory has room for.
  int64_t room = kernel.getTarget().getSharedBytes(), least = 0;
  SmallVector<RingShape> shapes = {{2, 2}, {2, 1}, {1, 1}};
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
