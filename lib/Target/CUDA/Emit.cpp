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
/// The device building blocks, embedded by CMake in include order.
std::vector<std::pair<std::string_view, std::string_view>> deviceFiles();
} // namespace mega::detail

/// The building blocks without their license lines and file comments' fences.
static void emitDeviceCode(llvm::raw_ostream &os) {
  // What wraps machine instructions comes first; a host that brings its own
  // versions of those defines MEGA_HOST_IDIOMS and compiles the rest as it is.
  bool inIdioms = true;
  os << "#ifndef MEGA_HOST_IDIOMS\n";
  for (auto [name, text] : mega::detail::deviceFiles()) {
    StringRef rest(text.data(), text.size());
    if (inIdioms && !rest.contains("asm")) {
      os << "#endif // MEGA_HOST_IDIOMS\n\n";
      inIdioms = false;
    }
    os << "//===----- " << name << " -----===//\n\n";
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
    os << "// state[" << index << "]: " << state.getSymName() << ", "
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
/// One phase, emitted.
struct EmittedPhase {
  std::string function;
  int64_t sharedBytes = 0, weightBytes = 0;
};
} // namespace

static FailureOr<EmittedPhase> emitPhase(PhaseOp phase, PhaseOp next,
                                         const KernelModel &model,
                                         const EmitterOptions &options,
                                         llvm::raw_ostream &os) {
  EmittedPhase result;
  auto stages = llvm::to_vector(phase.getBody().getOps<StageOp>());
  result.function = llvm::formatv("phase_{0,0+2}_{1}", phase.getIndex(),
                                  toIdentifier(stages.front().getName()))
                        .str();
  for (StageOp stage : stages) {
    os << "/// " << stage.getName();
    std::string location = describeLocation(stage.getLoc());
    if (!location.empty())
      os << " (" << location << ")";
    os << "\n";
  }
  os << "static __device__ __forceinline__ void " << result.function
     << "(const Params &p, mega::u8 *shared) {\n";
  for (auto [index, stage] : llvm::enumerate(stages)) {
    if (index != 0)
      os << "  __syncthreads(); // shared memory changes hands\n";
    os << "  {\n";
    StageEmitter emitter(model, os);
    if (failed(emitter.emit(stage)))
      return failure();
    os << "  }\n";
    result.sharedBytes =
        std::max(result.sharedBytes, emitter.getSharedBytes());
    result.weightBytes += emitter.getWeightBytes();
  }
  if (next && options.prefetchWeights) {
    std::string prefetch;
    llvm::raw_string_ostream prefetchOs(prefetch);
    for (StageOp stage : next.getBody().getOps<StageOp>())
      StageEmitter::emitPrefetch(model, stage, prefetchOs);
    if (!prefetch.empty())
      os << "  if (threadIdx.x == 0) { // the next phase's weights\n"
         << prefetch << "  }\n";
  }
  os << "}\n\n";
  return result;
}

FailureOr<EmittedKernel> mega::emitCuda(KernelOp kernel,
                                        const EmitterOptions &options) {
  KernelModel model(kernel);
  EmittedKernel result;
  result.entry = "megalith_" + toIdentifier(kernel.getSymName());
  result.sharedBytes = 0;
  llvm::raw_string_ostream os(result.source);
  os << "// One decode step of '" << kernel.getSymName()
     << "' as one cooperative kernel, written by megalithc.\n"
     << "//\n// Launch: one CTA of " << model.threads()
     << " threads per SM, all co-resident, at most "
     << model.getTarget().getCtas() << " CTAs.\n"
     << "// Compiles alone: nvcc -std=c++17 -arch="
     << model.getTarget().getArch() << " -cubin kernel.cu\n\n";
  emitDeviceCode(os);
  emitParameters(kernel, os);
  emitRopeTables(kernel, os);

  auto phases = llvm::to_vector(kernel.getBody().getOps<PhaseOp>());
  SmallVector<std::string> functions;
  for (auto [index, phase] : llvm::enumerate(phases)) {
    PhaseOp next = index + 1 < phases.size() ? phases[index + 1] : PhaseOp();
    FailureOr<EmittedPhase> emitted =
        emitPhase(phase, next, model, options, os);
    if (failed(emitted))
      return failure();
    functions.push_back(emitted->function);
    result.sharedBytes = std::max(result.sharedBytes, emitted->sharedBytes);
    result.phaseBytes.push_back(emitted->weightBytes);
  }
  if (result.sharedBytes > model.getTarget().getSharedBytes())
    return kernel.emitOpError("needs ")
           << result.sharedBytes
           << " bytes of shared memory, expected at most the target's "
           << model.getTarget().getSharedBytes();

  os << "extern \"C\" __global__ void __launch_bounds__(" << model.threads()
     << ", 1)\n"
     << result.entry << "(const Params p) {\n"
     << "  extern __shared__ __align__(128) mega::u8 shared[];\n";
  auto function = functions.begin();
  int64_t phase = 0;
  auto stamp = [&](StringRef which) {
    if (options.instrument)
      os << "  mega::stamp" << which << "(p.workspace + "
         << kernel.getWorkspaceBytes() << ", " << phase << ");\n";
  };
  for (Operation &op : kernel.getBody().front()) {
    if (isa<PhaseOp>(op)) {
      stamp("Begin");
      os << "  " << *function++ << "(p, shared);\n";
      stamp("End");
      ++phase;
    }
    if (auto barrier = dyn_cast<GridBarrierOp>(op)) {
      for (auto reason : barrier.getCovers().getAsRange<StringAttr>())
        os << "  // " << reason.getValue() << "\n";
      os << "  mega::GridBarrier::arriveAndWait("
            "reinterpret_cast<mega::u32 *>(p.workspace));\n";
    }
  }
  os << "}\n";
  if (options.instrument)
    result.stampBytes = phase * model.getTarget().getCtas() * 8;
  return result;
}
