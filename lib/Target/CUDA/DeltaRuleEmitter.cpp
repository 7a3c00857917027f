// SPDX-License-Identifier: Apache-2.0
/// \file
/// The recurrence: a strip of value columns a tile.

#include "StageEmitter.h"

using namespace mlir;
using namespace mega;

std::string StageEmitter::readyAtFirst(const std::string &tiles,
                                       StringRef indent) {
  std::string ready = takeReady();
  if (ready.empty())
    return "[&] { }";
  // A CTA without a tile must not arrive twice without a wait in between.
  os << indent << "if (int(blockIdx.x) >= " << tiles << ") {\n"
     << indent << "  " << ready << "\n"
     << indent << "}\n";
  return "[&] { if (tile == int(blockIdx.x)) { " + ready + " } }";
}

void StageEmitter::emitDeltaRule(DeltaRuleOp op) {
  int64_t keys = typeOf(op.getK()).getDimSize(1);
  int64_t columns = typeOf(op.getV()).getDimSize(1);
  int64_t strip = op.getTileExtent(), strips = columns / strip;
  std::string state = statePointer(op.getState());
  std::string scratch =
      declareScratch("mega::DeltaScratch<" + str(model.threads()) + ", " +
                         str(keys) + ", " + str(strip) + ">",
                     llvm::alignTo(keys * 20 + 2 * model.threads() * 8, 8));
  SmallVector<StoreOp> stores;
  collectStores(op.getResult(), stores);
  for (StoreOp store : stores)
    pointerTo(store.getBuffer());
  std::string kind, decay = "1.0f";
  switch (op.getKind()) {
  case DecayKind::None:
    kind = "None";
    break;
  case DecayKind::Head:
    kind = "Head";
    decay = at(op.getDecay(), "head");
    break;
  case DecayKind::Channel:
    kind = "Channel";
    decay = at(op.getDecay(), "(head * " + str(keys) + " + i)");
    break;
  }
  auto key = [&](Value value) {
    return at(value, "(head * " + str(keys) + " + i)");
  };
  if (!model.isPrivate(op.getState(), op->getParentOfType<StageOp>()))
    getReady();
  std::string ready = readyAtFirst(str(op.getTileCount()));
  os << "  for (int tile = blockIdx.x; tile < " << op.getTileCount()
     << "; tile += gridDim.x) {\n    mega::atTile(tile);\n"
     << "    if (tile != int(blockIdx.x))\n"
     << "      __syncthreads(); // the last tile's sums were read\n"
     << "    const int head = tile / " << strips << ", first = tile % "
     << strips << " * " << strip << ";\n"
     << "    mega::deltaRule<" << model.threads() << ", " << keys << ", "
     << columns << ", " << strip << ", mega::Decay::" << kind << ">(\n"
     << "        " << state << " + head * " << keys * columns
     << " + first,\n        " << ready << ",\n        [&](int i) { return "
     << key(op.getQ()) << "; },\n        [&](int i) { return " << key(op.getK())
     << "; },\n        [&](int i) { return "
     << at(op.getV(), "(head * " + str(columns) + " + first + i)")
     << "; },\n        [&] { return " << at(op.getBeta(), "head")
     << "; }, [&](int i) { return " << decay << "; },\n        " << scratch
     << ", [&](int column, float sum) {\n"
     << "          const int i = head * " << columns << " + first + column;\n";
  TileValue tile;
  tile.index = "i";
  tile.name = fresh("v");
  os << "          const float " << tile.name << " = "
     << rounded(op.getResult(), "sum") << ";\n";
  emitEpilogue(op.getResult(), tile, "          ");
  os << "        });\n  }\n";
}
