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

/// Code that one or more phases run, each with its own arguments.
struct PhaseKind {
  std::string name;     ///< after the first phase of the kind
  std::string body;     ///< statements
  std::string prefetch; ///< statements that ask L2 for rows; may be empty
  SmallVector<PhaseArguments> instances;
};

/// Emits the phases of a kernel, each distinct one once.
class PhaseList {
public:
  explicit PhaseList(const KernelModel &model) : model(model) {}

  LogicalResult add(PhaseOp phase, EmittedKernel &result);
  void emitKinds(llvm::raw_ostream &os, bool prefetch) const;
  void emitSchedule(llvm::raw_ostream &os) const;
  /// Copies the tables to shared memory at byte `offset`, which is where phases
  /// read them: constant memory is cold at each phase's first access.
  void emitTableCopies(int64_t offset, llvm::raw_ostream &os) const;
  /// Bytes of the tables in shared memory.
  int64_t tableBytes() const;
  void emitLoop(const EmitterOptions &options, llvm::raw_ostream &os) const;

private:
  /// A phase: which kind, and which of its instances.
  struct Entry {
    size_t kind, instance;
    std::string comment;
  };

  static int64_t argumentBytes(const PhaseKind &kind) {
    return std::max<int64_t>(kind.instances.front().getArguments().size(), 1) *
           8;
  }
  int64_t phaseTableBytes() const {
    return llvm::alignTo(entries.size() * 8, 16);
  }
  /// Of a kind's first arguments, from the start of the tables.
  int64_t argumentOffset(size_t kind) const {
    int64_t offset = phaseTableBytes();
    for (const PhaseKind &earlier : ArrayRef(kinds).take_front(kind))
      offset += earlier.instances.size() * argumentBytes(earlier);
    return offset;
  }

  const KernelModel &model;
  std::vector<PhaseKind> kinds;
  SmallVector<Entry> entries;
};

} // namespace

LogicalResult PhaseList::add(PhaseOp phase, EmittedKernel &result) {
  PhaseArguments arguments;
  std::string body, prefetch, comment;
  llvm::raw_string_ostream os(body), prefetchOs(prefetch);
  for (ResetOp reset : phase.getBody().getOps<ResetOp>()) {
    auto counters = reset.getCounters().getDefiningOp<CountersOp>();
    os << "  if (blockIdx.x == 0)\n    for (int i = threadIdx.x; i < "
       << counters.getCount() << "; i += " << model.threads()
       << ")\n      mega::Counter::reset(reinterpret_cast<mega::u32 *>("
          "p.workspace + "
       << arguments.add(counters.getName(), *counters.getOffset()) << ") + i * "
       << kCounterStride / 4 << ");\n";
  }
  auto stages = llvm::to_vector(phase.getBody().getOps<StageOp>());
  StageEmitter emitter(model, arguments, os);
  emitter.begin(phase);
  for (auto [number, stage] : llvm::enumerate(stages)) {
    if (number != 0)
      os << "  mega::atStage(" << number << "); // "
         << toComment(stage.getName()) << "\n";
    if (failed(emitter.emit(stage)))
      return failure();
    StageEmitter(model, arguments, prefetchOs).emitRowPrefetch(stage);
    std::string location = describeLocation(stage.getLoc());
    comment += (comment.empty() ? "" : "; ") + toComment(stage.getName()) +
               (location.empty() ? "" : " (" + location + ")");
  }
  result.sharedBytes = std::max(result.sharedBytes, emitter.getSharedBytes());
  result.phaseBytes.push_back(emitter.getWeightBytes());

  size_t kind = 0;
  while (kind < kinds.size() &&
         (kinds[kind].body != body || kinds[kind].prefetch != prefetch))
    ++kind;
  if (kind == kinds.size()) {
    kinds.push_back({llvm::formatv("phase_{0,0+2}_{1}", phase.getIndex(),
                                   toIdentifier(stages.front().getName()))
                         .str(),
                     body,
                     prefetch,
                     {}});
  }
  entries.push_back({kind, kinds[kind].instances.size(), comment});
  kinds[kind].instances.push_back(std::move(arguments));
  return success();
}

void PhaseList::emitKinds(llvm::raw_ostream &os, bool prefetch) const {
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
    os << "static __device__ __forceinline__ void " << kind.name
       << "(const Params &p, const Arguments" << index
       << " &a, mega::u8 *shared, Ring &ring) {\n"
       << kind.body << "}\n\n";
    if (prefetch && !kind.prefetch.empty())
      os << "/// Asks L2 for this CTA's rows of plain weights in " << kind.name
         << ".\n"
         << "static __device__ __forceinline__ void prefetch_" << kind.name
         << "(const Params &p, const Arguments" << index << " &a) {\n"
         << kind.prefetch << "}\n\n";
  }
}

void PhaseList::emitSchedule(llvm::raw_ostream &os) const {
  os << "/// Phases in order: whose code, with which arguments. A grid barrier "
        "stands\n/// between neighbours, for the reasons given.\n"
     << "struct Phase {\n  int kind, arguments; ///< number, byte offset in "
        "the "
        "tables\n};\n"
     << "__device__ const Phase kPhases[] = {\n";
  auto entry = entries.begin();
  for (Operation &op : KernelOp(model.getKernel()).getBody().front()) {
    if (auto barrier = dyn_cast<GridBarrierOp>(op))
      for (auto reason : barrier.getCovers().getAsRange<StringAttr>())
        os << "    // barrier: " << toComment(reason.getValue()) << "\n";
    if (isa<PhaseOp>(op)) {
      os << "    {" << entry->kind << ", "
         << argumentOffset(entry->kind) +
                int64_t(entry->instance) * argumentBytes(kinds[entry->kind])
         << "}, // " << entry->comment << "\n";
      ++entry;
    }
  }
  os << "};\n\n";
}

int64_t PhaseList::tableBytes() const { return argumentOffset(kinds.size()); }

void PhaseList::emitTableCopies(int64_t offset, llvm::raw_ostream &os) const {
  os << "  mega::u8 *const tables = shared + " << offset << ";\n"
     << "  mega::copyTable(tables, kPhases, sizeof(kPhases));\n";
  for (size_t kind = 0; kind < kinds.size(); ++kind)
    os << "  mega::copyTable(tables + " << argumentOffset(kind)
       << ", kArguments" << kind << ", sizeof(kArguments" << kind << "));\n";
}

void PhaseList::emitLoop(const EmitterOptions &options,
                         llvm::raw_ostream &os) const {
  int64_t stamps = KernelOp(model.getKernel()).getWorkspaceBytes();
  auto stamp = [&](StringRef which) {
    if (options.instrument)
      os << "    mega::stamp" << which << "(p.workspace + " << stamps
         << ", phase);\n";
  };
  auto argumentsOf = [](size_t index, StringRef phase) {
    return ("*reinterpret_cast<const Arguments" + llvm::Twine(index) +
            " *>(tables + phases[" + phase + "].arguments)")
        .str();
  };
  os << "  const auto *const phases = reinterpret_cast<const Phase "
        "*>(tables);\n"
     << "#pragma unroll 1\n  for (int phase = 0; phase < " << entries.size()
     << "; ++phase) {\n    mega::atPhase(phase);\n";
  stamp("Begin");
  os << "    switch (phases[phase].kind) {\n";
  for (auto [index, kind] : llvm::enumerate(kinds))
    os << "    case " << index << ":\n      " << kind.name << "(p, "
       << argumentsOf(index, "phase") << ", shared, ring);\n      break;\n";
  os << "    }\n";
  stamp("End");
  os << "    if (phase + 1 == " << entries.size() << ")\n      break;\n";
  bool any = llvm::any_of(
      kinds, [](const PhaseKind &kind) { return !kind.prefetch.empty(); });
  if (options.prefetchWeights && any) {
    os << "    switch (phases[phase + 1].kind) {\n";
    for (auto [index, kind] : llvm::enumerate(kinds))
      if (!kind.prefetch.empty())
        os << "    case " << index << ":\n      prefetch_" << kind.name
           << "(p, " << argumentsOf(index, "phase + 1") << ");\n      break;\n";
    os << "    }\n";
  }
  os << "    mega::GridBarrier::arriveAndWait("
        "reinterpret_cast<mega::u32 *>(p.workspace));\n  }\n";
}

/// Emits with one shape of the ring.
static FailureOr<EmittedKernel> emitWith(RingShape ring, KernelOp kernel,
                                         const EmitterOptions &options) {
  KernelModel model(kernel, ring);
  EmittedKernel result;
  result.entry = "megalith_" + toIdentifier(kernel.getSymName());
  PhaseList phases(model);
  for (PhaseOp phase : kernel.getBody().getOps<PhaseOp>())
    if (failed(phases.add(phase, result)))
      return failure();
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
  phases.emitKinds(os, options.prefetchWeights);
  phases.emitSchedule(os);
  os << "extern \"C\" __global__ void __launch_bounds__(" << model.threads()
     << ", 1)\n"
     << result.entry << "(const Params p) {\n"
     << "  extern __shared__ __align__(128) mega::u8 shared[];\n"
     << "  Ring ring;\n  ring.init(shared);\n";
  int64_t tables = llvm::alignTo(result.sharedBytes, 16);
  result.sharedBytes = tables + phases.tableBytes();
  phases.emitTableCopies(tables, os);
  os << "  __syncthreads();\n";
  phases.emitLoop(options, os);
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
