// SPDX-License-Identifier: Apache-2.0
/// \file
/// Latent attention: absorbed queries, scores of a chunk, joined values.

#include "Names.h"
#include "StageEmitter.h"

#include "mega/IR/LatentHeads.h"

using namespace mlir;
using namespace mega;

void StageEmitter::emitLatentQuery(LatentQueryOp op) {
  PackedWeight weight = model.packed(op.getWeight());
  int64_t heads = typeOf(op.getResult()).getDimSize(0);
  int64_t latent = typeOf(op.getResult()).getDimSize(1);
  int64_t width = typeOf(op.getQ()).getDimSize(1);
  // A head's columns in the weight are its keys, then its values.
  int64_t perHead = weight.outputs / heads;
  int64_t keys = op.getKeys();
  weightBytes +=
      heads * keys / kUnitOutputs * weight.steps() * weight.unitBytes();
  std::string scratch =
      declareScratch("mega::LatentQueryScratch<" + str(model.threads()) + ">",
                     model.threads() / 64 * 128 * 4);
  std::string out = pointerTo(storeOf(op.getResult()).getBuffer());
  std::string ready = readyAtFirst(str(op.getTileCount()));
  os << "  for (int tile = blockIdx.x; tile < " << op.getTileCount()
     << "; tile += gridDim.x) {\n    mega::atTile(tile);\n"
        "    const int head = tile / "
     << weight.steps() << ", step = tile % " << weight.steps() << ";\n"
     << "    mega::latentQuery<" << model.threads() << ", " << keys << ", "
     << weight.sets << ">(\n        " << ready << ", [&](int i) { return "
     << at(op.getQ(), "(head * " + str(width) + " + i)") << "; }, " << scratch
     << ",\n        [&](int row) { return " << weightAddress(op.getWeight())
     << " + mega::u64((head * " << perHead / kUnitOutputs << " + row) * "
     << weight.steps() << " + step) * " << weight.unitBytes()
     << "; },\n        [&](int column, float sum) {\n"
     << "          const int channel = step * " << kUnitInputs
     << " + column;\n          if (channel < " << latent << ") " << out
     << "[head * " << latent << " + channel] = sum;\n        });\n  }\n";
}

LogicalResult StageEmitter::emitLatentScores(LatentScoresOp op) {
  int64_t heads = typeOf(op.getQ()).getDimSize(0);
  int64_t width = typeOf(op.getQ()).getDimSize(1);
  int64_t latent = typeOf(op.getAbsorbed()).getDimSize(1);
  int64_t rope = model.stateType(op.getRope()).getDimSize(1);
  if (latent % 8 != 0 || rope % 8 != 0)
    return op.emitOpError("reads cache rows of ")
           << latent << " and " << rope << " elements, expected multiples of 8";
  // Rows at a time, and passes whose scores are kept: what shared memory holds.
  int64_t padded = llvm::alignTo(latent + rope, 16);
  int64_t warps = model.threads() / 32;
  auto scratchBytes = [&](int64_t rows, int64_t partials) {
    int64_t scores =
        std::max(partials * warps * kLatentHeads * (rows + 8),
                 kLatentHeads * int64_t(llvm::alignTo(padded, 32) + 8));
    return 3 * rows * (padded + 8) * 2 + scores * 4 +
           3 * kLatentHeads * (rows + 8) * 2 + kLatentHeads * 4;
  };
  int64_t room = model.getTarget().getSharedBytes() - sharedBytes - 16;
  int64_t rows = 32, partials = 2;
  if (scratchBytes(rows, partials) > room)
    partials = 1;
  if (scratchBytes(rows, partials) > room)
    rows = 16;
  if (scratchBytes(rows, partials) > room)
    return op.emitOpError("needs ")
           << scratchBytes(rows, partials) << " bytes of shared memory for "
           << 3 * rows << " cache rows of " << latent + rope
           << " elements, expected at most the " << room
           << " that the target leaves";
  std::string state = statePointer(op.getLatent());
  std::string ropeState = statePointer(op.getRope());
  bool exact = typeOf(op.getQ()).getElementType().isBF16();
  std::string shape = "mega::LatentShape<" + str(model.threads()) + ", " +
                      str(latent) + ", " + str(rope) + ", " +
                      str(exact ? 1 : 3) + ", " + str(rows) + ", " +
                      str(partials) + ">";
  std::string scratch = declareScratch("mega::LatentScratch<" + shape + ">",
                                       scratchBytes(rows, partials));
  std::string maximum = pointerTo(storeOf(op.getMaximum()).getBuffer());
  std::string sum = pointerTo(storeOf(op.getSum()).getBuffer());
  std::string context = pointerTo(storeOf(op.getContext()).getBuffer());
  std::string most = str(typeOf(op.getMaximum()).getDimSize(1));
  std::string absorbed =
      pointerTo(op.getAbsorbed().getDefiningOp<LoadOp>().getBuffer());
  std::string own =
      heads % kLatentHeads == 0
          ? str(kLatentHeads)
          : "min(" + str(heads) + " - base, " + str(kLatentHeads) + ")";
  // Rows that an earlier phase has appended may be asked for at once.
  auto stage = op->getParentOfType<StageOp>();
  for (FlatSymbolRefAttr cache : {op.getLatentAttr(), op.getRopeAttr()})
    if (model.isTouchedJustBefore(cache.getValue(), stage))
      getReady();
  os << "  {\n    using Chunks = mega::LatentChunks<" << heads << ">;\n"
     << "    const int length = int(p.position) + 1;\n"
     << "    const int chunks = Chunks::count(length);\n";
  std::string ready = readyAtFirst("Chunks::kGroups * chunks", "    ");
  os << "    for (int tile = blockIdx.x; tile < Chunks::kGroups * chunks; tile "
        "+= gridDim.x) {\n"
     << "      mega::atTile(tile);\n"
     << "      const int chunk = tile / Chunks::kGroups;\n"
     << "      const int base = tile % Chunks::kGroups * " << kLatentHeads
     << ";\n      mega::latentScores<" << shape << ">(\n"
     << "          Chunks::rows(length, chunk, chunks), " << own << ", "
     << state << ", " << ropeState << ",\n          "
     << floatLiteral(op.getScale().convertToDouble()) << ", " << ready
     << ",\n          [&](int h) { return " << absorbed << " + (base + h) * "
     << latent << "; },\n          [&](int h, int c) { return "
     << at(op.getQ(),
           "((base + h) * " + str(width) + " + " + str(width - rope) + " + c)")
     << "; },\n          " << scratch
     << ", [&](int h, float top, float total) {\n            " << maximum
     << "[(base + h) * " << most << " + chunk] = top;\n            " << sum
     << "[(base + h) * " << most << " + chunk] = total;\n          },\n"
     << "          [&](int h, int c, float2 pair) {\n"
     << "            *reinterpret_cast<float2 *>(" << context << " + (chunk * "
     << heads << " + base + h) * " << latent
     << " + c) = pair;\n          });\n    }\n  }\n";
  return success();
}

void StageEmitter::emitLatentValue(LatentValueOp op) {
  PackedWeight weight = model.packed(op.getWeight());
  int64_t chunks = typeOf(op.getContext()).getDimSize(0);
  int64_t heads = typeOf(op.getContext()).getDimSize(1);
  int64_t latent = typeOf(op.getContext()).getDimSize(2);
  int64_t columns = typeOf(op.getResult()).getNumElements() / heads;
  int64_t perHead = weight.outputs / heads, keys = perHead - columns;
  weightBytes +=
      heads * columns / kUnitOutputs * weight.steps() * weight.unitBytes();
  std::string scratch =
      declareScratch("mega::LatentValueScratch<" + str(model.threads()) + ">",
                     model.threads() / 32 * 128 * 4 + 3 * 128 * 2);
  std::string out = pointerTo(storeOf(op.getResult()).getBuffer());
  std::string context =
      "mega::loadSharedFloat4(" +
      pointerTo(op.getContext().getDefiningOp<LoadOp>().getBuffer()) +
      " + ((i * " + str(heads) + " + head) * " + str(latent) + " + step * " +
      str(kUnitInputs) + " + c))";
  if (latent % kUnitInputs != 0)
    context = "step * " + str(kUnitInputs) + " + c < " + str(latent) + " ? " +
              context + " : float4{0, 0, 0, 0}";
  std::string perChunk = "(head * " + str(chunks) + " + i)";
  std::string ready = readyAtFirst(str(op.getTileCount()));
  os << "  for (int tile = blockIdx.x; tile < " << op.getTileCount()
     << "; tile += gridDim.x) {\n    mega::atTile(tile);\n"
        "    const int head = tile / "
     << weight.steps() << ", step = tile % " << weight.steps() << ";\n"
     << "    mega::latentValue<" << model.threads() << ", " << chunks << ", "
     << columns << ", " << weight.sets << ">(\n        mega::LatentChunks<"
     << heads << ">::count(int(p.position) + 1),\n        " << ready
     << ",\n        [&](int i) { return " << at(op.getMaximum(), perChunk)
     << "; },\n        [&](int i) { return " << at(op.getSum(), perChunk)
     << "; },\n        [&](int i, int c) { return " << context << "; }, "
     << scratch << ",\n        [&](int row) { return "
     << weightAddress(op.getWeight()) << " + mega::u64((head * "
     << perHead / kUnitOutputs << " + " << keys / kUnitOutputs << " + row) * "
     << weight.steps() << " + step) * " << weight.unitBytes()
     << "; },\n        [&](int column, float sum) { " << out << "[step * "
     << heads * columns << " + head * " << columns
     << " + column] = sum; });\n  }\n";
}
