// SPDX-License-Identifier: Apache-2.0
/// \file
/// Writes manifests and phase tables.

#include "mega/Target/Manifest.h"

#include "mega/Analysis/Certificate.h"
#include "mega/Analysis/StageAccess.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace mega;
namespace json = llvm::json;

static StringRef dtypeName(Type type) {
  return type.isBF16() ? "bf16" : type.isF32() ? "f32" : "i32";
}

static json::Array shapeOf(ArrayRef<int64_t> shape) {
  json::Array array;
  for (int64_t dim : shape)
    array.push_back(ShapedType::isDynamic(dim) ? -1 : dim);
  return array;
}

static json::Object vectorOf(BufferType type) {
  return json::Object{{"dtype", dtypeName(type.getElementType())},
                      {"shape", shapeOf(type.getShape())}};
}

static json::Object tensorEntry(const llvm::Twine &name, StringRef dtype,
                                ArrayRef<int64_t> shape) {
  return json::Object{
      {"name", name.str()}, {"dtype", dtype}, {"shape", shapeOf(shape)}};
}

static json::Object weightEntry(WeightOp weight) {
  StringRef name = weight.getSymName();
  json::Object entry{{"name", name}};
  json::Array tensors;
  if (auto quant = dyn_cast<QuantType>(weight.getType())) {
    SmallVector<int64_t> codes(quant.getShape()), groups(quant.getShape());
    codes[codes.size() - 2] /= 2;
    groups[groups.size() - 2] /= quant.getGroup();
    tensors.push_back(tensorEntry(name + ".w_q", "u8", codes));
    tensors.push_back(tensorEntry(name + ".scales", "bf16", groups));
    tensors.push_back(tensorEntry(name + ".zeros", "bf16", groups));
    entry["kind"] = "quant";
    entry["shape"] = shapeOf(quant.getShape());
    entry["group"] = quant.getGroup();
  } else {
    auto tensor = cast<RankedTensorType>(weight.getType());
    tensors.push_back(tensorEntry(name, dtypeName(tensor.getElementType()),
                                  tensor.getShape()));
    entry["kind"] = "dense";
    entry["shape"] = shapeOf(tensor.getShape());
  }
  entry["tensors"] = std::move(tensors);
  return entry;
}

/// Weights that the kernel reads, in the order in which they lie.
static llvm::SmallVector<StringRef> packedSources(KernelOp kernel) {
  SmallVector<StringRef> names;
  for (auto region : kernel.getWeightLayout().getAsRange<DictionaryAttr>())
    for (auto name :
         cast<ArrayAttr>(region.get("sources")).getAsRange<StringAttr>())
      names.push_back(name.getValue());
  return names;
}

static json::Array packedRegions(KernelOp kernel) {
  json::Array regions;
  for (auto region : kernel.getWeightLayout().getAsRange<DictionaryAttr>()) {
    json::Array sources;
    for (auto name :
         cast<ArrayAttr>(region.get("sources")).getAsRange<StringAttr>())
      sources.push_back(name.getValue());
    regions.push_back(json::Object{
        {"layout", cast<StringAttr>(region.get("layout")).getValue()},
        {"offset", cast<IntegerAttr>(region.get("offset")).getInt()},
        {"bytes", cast<IntegerAttr>(region.get("bytes")).getInt()},
        {"sources", std::move(sources)}});
  }
  return regions;
}

/// Bytes of state that a step reads and writes, without the caches' rows.
static std::pair<int64_t, int64_t> stateTraffic(ModuleOp module) {
  int64_t fixed = 0, perToken = 0;
  for (StateOp state : module.getOps<StateOp>()) {
    RankedTensorType type = state.getTensorType();
    int64_t row = type.getElementTypeBitWidth() / 8;
    for (int64_t dim : type.getShape())
      row *= ShapedType::isDynamic(dim) ? 1 : dim;
    if (state.isCache())
      perToken += row;
    else
      fixed += 2 * row;
  }
  return {fixed, perToken};
}

/// The proof that no schedule has fewer barriers; null for a schedule that
/// someone else wrote.
static ArrayAttr barrierChain(KernelOp kernel) {
  return kernel->getAttrOfType<ArrayAttr>(kBarrierChainAttrName);
}

static json::Object scheduleOf(KernelOp kernel, const KernelFacts &facts) {
  json::Array list;
  int64_t weights = 0, barriers = 0;
  for (Operation &op : kernel.getBody().front())
    barriers += isa<GridBarrierOp>(op);
  for (auto [phase, bytes] :
       llvm::zip_equal(kernel.getBody().getOps<PhaseOp>(), facts.phaseBytes)) {
    json::Array stages;
    for (StageOp stage : phase.getBody().getOps<StageOp>())
      stages.push_back(stage.getName());
    list.push_back(json::Object{{"index", int64_t(phase.getIndex())},
                                {"stages", std::move(stages)},
                                {"bytes", bytes}});
    weights += bytes;
  }
  auto [fixed, perToken] = stateTraffic(kernel->getParentOfType<ModuleOp>());
  json::Object schedule{
      {"phases", int64_t(facts.phaseBytes.size())},
      {"barriers", barriers},
      {"phase_list", std::move(list)},
      {"bytes_per_step", json::Object{{"weights", weights},
                                      {"state", fixed},
                                      {"cache_per_token", perToken}}}};
  if (ArrayAttr chain = barrierChain(kernel)) {
    json::Array links;
    for (auto link : chain.getAsRange<StringAttr>())
      links.push_back(link.getValue());
    schedule["lower_bound"] = int64_t(links.size());
    schedule["chain"] = std::move(links);
  }
  return schedule;
}

/// The head of the workspace, before counters and buffers, belongs to the grid
/// barrier. It and the counters live from launch to launch; buffers are
/// scratch.
static json::Object workspaceOf(KernelOp kernel, int64_t bytes) {
  int64_t head = kernel.getWorkspaceBytes();
  for (AllocOp alloc : kernel.getBody().getOps<AllocOp>())
    head = std::min<int64_t>(head, *alloc.getOffset());
  json::Array persistent;
  for (CountersOp counters : kernel.getBody().getOps<CountersOp>()) {
    int64_t offset = *counters.getOffset(), count = counters.getCount();
    head = std::min(head, offset);
    persistent.push_back(json::Object{{"offset", offset},
                                      {"bytes", count * kCounterStride},
                                      {"kind", "counters"},
                                      {"name", counters.getName()},
                                      {"count", count}});
  }
  if (head > 0)
    persistent.insert(
        persistent.begin(),
        json::Object{{"offset", 0}, {"bytes", head}, {"kind", "grid_barrier"}});
  return json::Object{{"bytes", bytes}, {"persistent", std::move(persistent)}};
}

/// Whether the output may lie where the input lies: nothing reads the input
/// in the phase that writes the output, or later.
static bool allowsInPlace(KernelOp kernel) {
  int64_t lastRead = -1, firstWrite = std::numeric_limits<int64_t>::max();
  for (Operation *user : kernel.getBody().getArgument(0).getUsers())
    lastRead = std::max<int64_t>(lastRead,
                                 user->getParentOfType<PhaseOp>().getIndex());
  for (Operation *user : kernel.getBody().getArgument(1).getUsers())
    firstWrite = std::min<int64_t>(firstWrite,
                                   user->getParentOfType<PhaseOp>().getIndex());
  return lastRead < firstWrite;
}

json::Object mega::makeManifest(KernelOp kernel, const KernelFacts &facts,
                                ArrayRef<CompiledTarget> targets,
                                json::Array relaxations) {
  auto module = kernel->getParentOfType<ModuleOp>();
  json::Array weights, states, probes, compiled;
  SymbolTable symbols(module);
  for (StringRef name : packedSources(kernel))
    weights.push_back(weightEntry(symbols.lookup<WeightOp>(name)));
  for (StateOp state : module.getOps<StateOp>())
    states.push_back(tensorEntry(
        state.getSymName(), dtypeName(state.getTensorType().getElementType()),
        state.getTensorType().getShape()));
  for (AllocOp alloc : kernel.getBody().getOps<AllocOp>())
    if (alloc.getProbe()) {
      json::Object probe = vectorOf(alloc.getBuffer().getType());
      probe["name"] = *alloc.getProbe();
      probe["offset"] = int64_t(*alloc.getOffset());
      probes.push_back(std::move(probe));
    }
  int64_t workspaceBytes = kernel.getWorkspaceBytes() + facts.stampBytes;
  if (facts.stampBytes != 0)
    probes.push_back(
        json::Object{{"name", "megalith.stamps"},
                     {"dtype", "i32"},
                     {"shape", json::Array{int64_t(facts.phaseBytes.size()),
                                           kernel.getTarget().getCtas(), 2}},
                     {"offset", int64_t(kernel.getWorkspaceBytes())}});
  int64_t warps = kernel.getTarget().getThreads() / 32;
  for (const CompiledTarget &target : targets)
    compiled.push_back(json::Object{{"arch", target.arch},
                                    {"file", target.file},
                                    {"registers", target.registers},
                                    {"warps_per_sm", warps},
                                    {"spill_bytes", target.spillBytes},
                                    {"stack_bytes", target.stackBytes},
                                    {"static_shared_bytes", 0}});
  auto vectorArgument = [&](unsigned index) {
    return vectorOf(
        cast<BufferType>(kernel.getBody().getArgument(index).getType()));
  };
  return json::Object{
      {"format", "megalith-bundle"},
      {"version", 1},
      {"compiler", MEGALITH_COMPILER_VERSION},
      {"block", kernel.getSymName()},
      {"kernel", facts.entry},
      {"input", vectorArgument(0)},
      {"output", vectorArgument(1)},
      {"in_place", allowsInPlace(kernel)},
      {"weights", std::move(weights)},
      {"weight_bytes", int64_t(kernel.getWeightBytes())},
      {"packed", packedRegions(kernel)},
      {"states", std::move(states)},
      {"workspace", workspaceOf(kernel, workspaceBytes)},
      {"probes", std::move(probes)},
      {"relaxations", std::move(relaxations)},
      {"launch", json::Object{{"threads", kernel.getTarget().getThreads()},
                              {"shared_bytes", facts.sharedBytes},
                              {"max_ctas", kernel.getTarget().getCtas()}}},
      {"schedule", scheduleOf(kernel, facts)},
      {"targets", std::move(compiled)}};
}

json::Array mega::collectRelaxations(Operation *module) {
  json::Array relaxations;
  module->walk([&](LatentAttentionOp op) {
    if (!op.getAbsorb())
      return;
    std::string location;
    if (auto file = op.getLoc()->findInstanceOf<FileLineColLoc>())
      location =
          (llvm::sys::path::filename(file.getFilename()) + ":" +
           llvm::Twine(file.getLine()) + ":" + llvm::Twine(file.getColumn()))
              .str();
    relaxations.push_back(json::Object{{"op", op->getName().getStringRef()},
                                       {"kind", "absorb"},
                                       {"location", location}});
  });
  return relaxations;
}

void mega::printPhaseTable(KernelOp kernel, const KernelFacts &facts,
                           llvm::raw_ostream &os) {
  os << "phase  tiles  weights [MB]  stage\n";
  int64_t total = 0, barriers = 0;
  auto bytes = facts.phaseBytes.begin();
  for (Operation &op : kernel.getBody().front()) {
    barriers += isa<GridBarrierOp>(op);
    auto phase = dyn_cast<PhaseOp>(op);
    if (!phase)
      continue;
    bool first = true;
    for (StageOp stage : phase.getBody().getOps<StageOp>()) {
      if (first)
        os << llvm::format("%5lld", (long long)phase.getIndex());
      else
        os << "     ";
      os << llvm::format("  %5lld", (long long)stage.getTiles().value_or(0));
      if (first)
        os << llvm::format("  %12.3f", *bytes / 1e6);
      else
        os << "              ";
      os << "  " << stage.getName() << "\n";
      first = false;
    }
    total += *bytes++;
  }
  auto [fixed, perToken] = stateTraffic(kernel->getParentOfType<ModuleOp>());
  int64_t sets = 0, waits = 0;
  for (CountersOp counters : kernel.getBody().getOps<CountersOp>()) {
    ++sets;
    waits += counters.getCount();
  }
  if (sets != 0)
    os << llvm::format("%lld sets of counters, %lld counters\n",
                       (long long)sets, (long long)waits);
  os << llvm::format(
      "%zu phases, %lld grid barriers; a step moves %.2f MB of weights, "
      "%.2f MB of state, %lld B a cached token\n",
      facts.phaseBytes.size(), (long long)barriers, total / 1e6, fixed / 1e6,
      (long long)perToken);
  if (ArrayAttr chain = barrierChain(kernel)) {
    os << "barriers " << barriers << ", lower bound " << chain.size()
       << ": chain\n";
    for (auto link : chain.getAsRange<StringAttr>())
      os << "  " << link.getValue() << "\n";
  }
}
