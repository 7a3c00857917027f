// SPDX-License-Identifier: Apache-2.0
/// \file
/// Emits one stage: its prologue in PrologueEmitter.cpp, its anchors in
/// AnchorEmitter.cpp and in files of their own.
///
/// A tensor of a prologue is either an expression in the element's index, which
/// costs nothing until somebody asks for an element, or it lies in shared
/// memory. What several readers want, or what tensor cores read, is shared.

#ifndef MEGA_LIB_TARGET_CUDA_STAGEEMITTER_H
#define MEGA_LIB_TARGET_CUDA_STAGEEMITTER_H

#include "KernelModel.h"
#include "PhaseArguments.h"
#include "ShareTable.h"

#include "mega/Target/CUDA/EmitterOptions.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/raw_ostream.h"

#include <functional>
#include <string>

namespace mega {

inline mlir::RankedTensorType typeOf(mlir::Value value) {
  return mlir::cast<mlir::RankedTensorType>(value.getType());
}

inline std::string str(int64_t value) { return std::to_string(value); }

/// Elements of a piece: 16 bytes of bf16.
constexpr int64_t kPieceElements = 8;

/// True if one pass over pieces normalises the row.
bool normalisesPieces(RmsNormOp op);

/// The C expression of an element, given the C expression of its flat index.
using ElementExpr = std::function<std::string(const std::string &index)>;

/// How eight elements of a value come about: `index`, a multiple of 8, is the
/// first's. What is loaded and what is computed from that are apart, so that
/// other loads can be started in between. Lines stand behind `indent`.
struct PieceRecipe {
  /// Members of the struct `raw` that holds what is loaded; may be empty.
  std::string fields;
  /// Statements that load them; null if there are none.
  std::function<std::string(const std::string &index, const std::string &raw,
                            llvm::StringRef indent)>
      load;
  /// Statements that set the array `name` to the elements; null if elements
  /// must be taken one by one.
  std::function<std::string(const std::string &index, const std::string &raw,
                            const std::string &name, llvm::StringRef indent)>
      use;
  /// The member that is the elements themselves, as bf16; may be empty.
  std::string packed;

  explicit operator bool() const { return bool(use); }
};

/// A value that every CTA of the stage holds or can compute.
///
/// Loops over pieces of eight elements give piece i to thread i % threads,
/// always: what such a loop put into shared memory the next may read without a
/// barrier, unless the value is `shifted` against what it is computed from.
struct PrologueValue {
  ElementExpr at;
  PieceRecipe piece;    ///< false if elements must be taken one by one
  bool shifted = false; ///< a piece needs other pieces of a shared value
  /// Name of its Activation or array in shared memory; empty for expressions.
  std::string shared;
  int64_t levels = 0; ///< bf16 planes of an Activation
  int64_t length = 0; ///< padded elements of an Activation
};

/// A value that the owner of a tile holds, inside a sink.
struct TileValue {
  std::string index; ///< variable with the element's flat index
  std::string guard; ///< condition under which the element exists; may be empty
  std::string name;  ///< variable with the element
  ElementExpr at;    ///< other elements of the tile; null if state was updated
};

/// A list of weight units that the grid shares out.
struct UnitList {
  int64_t tiles, steps;
  int64_t segment; ///< steps that lie together and share a scale
  int64_t sets;    ///< groups of scales in a unit
  bool split;      ///< shared out by step, not by tile
  int64_t units;   ///< of a burst

  int64_t bursts() const { return steps / units; } ///< of a tile
};

/// Statements around a stage's own.
struct StageFrame {
  /// Those that must run before the stage touches what others write or read:
  /// the wait at the barrier in front of it.
  std::string ready;
  std::string end; ///< last of all
  /// Loads of what nobody else writes may stand before `ready`.
  bool early = true;
};

class StageEmitter {
public:
  StageEmitter(const KernelModel &model, PhaseArguments &arguments,
               ShareTable &shares, StageFrame frame, llvm::raw_ostream &os)
      : model(model), arguments(arguments), shares(shares),
        frame(std::move(frame)), os(os), sharedBytes(model.ringBarrierBytes()) {
  }

  /// Emits the statements of `stage`, indented for a function body.
  mlir::LogicalResult emit(StageOp stage);

  /// Shared memory that the stage uses, in bytes.
  int64_t getSharedBytes() const { return sharedBytes; }

  /// Weight bytes that all CTAs together read in the stage.
  int64_t getWeightBytes() const { return weightBytes; }

private:
  //===--------------------------------------------------------------------===//
  // Prologue (StageEmitter.cpp, PrologueEmitter.cpp)
  //===--------------------------------------------------------------------===//

  /// Refuses lists that are too long for how the grid shares them out.
  mlir::LogicalResult checkShares(StageOp stage) const;
  void emitPrologueOp(mlir::Operation *op);
  /// Comes before the first access to what other stages write or read.
  void getReady();
  /// The same statements, for a callback.
  std::string takeReady();
  /// A callback that runs them in the CTA's first tile of `tiles`, a loop's
  /// variable `tile`; CTAs without a tile run them here.
  std::string readyAtFirst(const std::string &tiles,
                           llvm::StringRef indent = "  ");
  /// A barrier, if something in shared memory waits for one.
  void sync();
  void emitLoad(LoadOp op);
  void emitLoadSum(LoadSumOp op);
  void emitMap(MapOp op);
  void emitRope(RopeOp op);
  void emitRmsNorm(RmsNormOp op);
  void emitRouter(RouterOp op);
  void emitView(mlir::Operation *op);
  void emitPrologueStore(StoreOp op);
  /// Statements that store the piece `v` at `i` of a row wherever `value` goes,
  /// if it is this CTA's to store; those stores are then done.
  std::string storePieces(mlir::Value value);

  /// Puts `value` where several readers can take it from, if they want to.
  void shareIfNeeded(mlir::Value value);
  void shareAsActivation(mlir::Value value);
  void sharePieces(mlir::Value value);
  /// True if pieces of `value` can be taken with no barrier in between.
  bool takesPieces(mlir::Value value);
  void shareAsArray(mlir::Value value);
  /// Declares an Activation for `value` and makes it the value's home.
  PrologueValue &declareActivation(mlir::Value value);

  //===--------------------------------------------------------------------===//
  // Anchors (AnchorEmitter.cpp)
  //===--------------------------------------------------------------------===//

  mlir::LogicalResult emitAnchors(StageOp stage);
  void emitLinearStream(llvm::SmallVector<LinearOp> linears);
  void emitQuantLinears(llvm::SmallVector<LinearOp> linears);
  UnitList linearList(llvm::SmallVector<LinearOp> linears) const;
  UnitList expertList(mlir::Operation *op) const;
  UnitList unitList(int64_t tiles, int64_t steps, int64_t segment, int64_t sets,
                    bool split) const;
  /// Declares the stream of an expert's projections as soon as the experts' ids
  /// are in shared memory.
  void emitExpertStream(mlir::Operation *op);
  /// C expression of a CTA's run of the list, in bursts.
  std::string runOf(const UnitList &list);
  /// C expression of the CTA's part of `total` equal things.
  std::string ownOf(int64_t total) {
    return shares.add(total, 1, ShareTable::Of::Tiles);
  }
  /// The same, the last CTA first.
  std::string ownOfReversed(int64_t total) {
    return shares.add(total, 1, ShareTable::Of::Reversed);
  }
  /// Declares `unit` and `stream`: each unit's address, `address` being a
  /// lambda's body, and the warp's cursor.
  void emitStream(const UnitList &list, const std::string &address);
  /// Begins a call of quantGemv, up to the body of its sink.
  /// `ahead` sets the sink's `ahead`, a struct Ahead; empty for nothing.
  void emitGemv(const UnitList &list, bool scaled, const PrologueValue &x,
                const std::string &scale, const std::string &ahead = {});
  /// Declares the struct of what the sinks of linears read of memory and know
  /// before the sums are there, if there is any; returns the statements that
  /// load it for `tile` and `row`.
  std::string emitAhead(llvm::ArrayRef<LinearOp> linears);
  /// A statement that loads what `conv` reads for `channel`.
  std::string convLoad(ShortConvOp conv, const std::string &window,
                       const std::string &channel);
  void emitDenseRows(LinearOp op);
  /// Statements that ask for weights once the loads of `value`, which their
  /// products read, are on their way.
  std::string askBehind(mlir::Value value);
  void emitDenseLinear(LinearOp op);
  void emitDeltaRule(DeltaRuleOp op);
  void emitExpertGateUp(ExpertGateUpOp op);
  void emitExpertDown(ExpertDownOp op);
  void emitLatentQuery(LatentQueryOp op);
  mlir::LogicalResult emitLatentScores(LatentScoresOp op);
  void emitLatentValue(LatentValueOp op);
  void emitElementwise(ElementwiseOp op);

  /// Emits everything that hangs on `result`, for the element `base`.
  void emitEpilogue(mlir::Value result, TileValue base, llvm::StringRef indent);
  void emitTileOp(mlir::Operation *op, llvm::StringRef indent);
  void emitTileStore(StoreOp op, llvm::StringRef indent);

  /// Declares the scratch of quantGemv over `stream`; returns its name.
  std::string declareGemvScratch(const UnitList &list);
  /// The unit address of an expert's projections, as a lambda's body; `ids`
  /// is an int array.
  std::string gateUpAddress(ExpertGateUpOp op, llvm::StringRef ids);
  std::string downAddress(ExpertDownOp op, llvm::StringRef ids);
  /// Stores a split anchor's partial sums from inside a sink.
  void emitPartialStore(mlir::Value result, llvm::StringRef tile,
                        llvm::StringRef index, llvm::StringRef value,
                        const PartialSums &sums, llvm::StringRef indent);
  StoreOp storeOf(mlir::Value value) const;
  /// Where an anchor's values go in the end: their pointers are declared
  /// outside the sink that uses them.
  static void collectStores(mlir::Value value,
                            llvm::SmallVectorImpl<StoreOp> &stores);

  //===--------------------------------------------------------------------===//
  // Counters (CounterEmitter.cpp)
  //===--------------------------------------------------------------------===//

  /// Which tiles of an anchor are this CTA's: from a run of a list, or every
  /// gridDim.x-th.
  struct OwnTiles {
    int64_t count;     ///< tiles of the anchor
    int64_t first;     ///< number of its first in the list
    int64_t parts;     ///< of a tile that the run counts
    int64_t steps;     ///< of a part that a signal counts
    std::string range; ///< the run's C expression; empty: every gridDim.x-th
  };
  OwnTiles ownTiles(mlir::Operation *anchor);
  /// Opens two blocks in which `tile` is an own tile of the anchor and `steps`
  /// how much of it, thread by thread or for all.
  void emitOwnTiles(const OwnTiles &own, bool byThread);
  void emitWholeWaits(StageOp stage);
  void emitTileWaits(StageOp stage);
  void emitSignals(StageOp stage);
  std::string counterAddress(mlir::Value counters, mlir::AffineMap map,
                             llvm::StringRef tile);

  //===--------------------------------------------------------------------===//
  // Names and memory
  //===--------------------------------------------------------------------===//

  /// Reserves shared memory; returns the byte offset.
  int64_t reserve(int64_t bytes);
  /// Declares a scratch struct in shared memory; returns its name.
  std::string declareScratch(const std::string &type, int64_t bytes);
  /// Name of a typed pointer to a buffer, declared at first use.
  std::string pointerTo(mlir::Value buffer);
  /// Name of a typed pointer to a state.
  std::string statePointer(llvm::StringRef state);
  std::string fresh(llvm::StringRef stem);
  /// `expression` rounded as `value`'s element type asks.
  static std::string rounded(mlir::Value value, const std::string &expression);
  std::string at(mlir::Value value, const std::string &index);

  /// Address of a weight in the arena, and of a state.
  std::string weightAddress(llvm::StringRef weight);
  std::string stateAddress(llvm::StringRef state);
  /// Address of a unit of one of several weights whose tiles form one list, in
  /// the variables `tile` and `step`.
  std::string unitAddress(llvm::SmallVector<LinearOp> linears);
  /// Address of unit `number` of a weight; declares the weight's own at first
  /// use, since every copy needs it.
  std::string unitAt(llvm::StringRef weight, const std::string &number);

  const KernelModel &model;
  PhaseArguments &arguments;
  ShareTable &shares;
  StageFrame frame;
  llvm::raw_ostream &os;
  llvm::DenseMap<mlir::Value, PrologueValue> values;
  llvm::DenseMap<mlir::Value, TileValue> tileValues;
  llvm::DenseMap<mlir::Value, std::string> pointers;
  llvm::StringMap<std::string> statePointers;
  llvm::StringMap<std::string> unitBases;
  /// The windows of convolutions that were loaded ahead of their sink.
  llvm::DenseMap<mlir::Operation *, std::string> convWindows;
  /// The rows of plain linears, in their order, and the statements that ask for
  /// their first pieces until those have been emitted.
  struct DenseRowsName {
    std::string name, ask;
  };
  llvm::MapVector<mlir::Operation *, DenseRowsName> denseRows;
  /// The value behind whose loads the stage's packed weights are asked for;
  /// null if there is none or that has been done.
  mlir::Value streamedFor;
  llvm::DenseSet<mlir::Operation *> stored; ///< by storePieces
  /// Stores to shared memory that wait for their loads.
  llvm::SmallVector<std::string> lateStores;
  bool pendingSync = false;
  /// Names of the current stage's unit address and stream, and until they have
  /// been emitted the statements that take up the CTA's run and start copies.
  std::string unit, stream, streamBegin, streamFill;
  int64_t arrays = 0; ///< arrays loaded so far, each by another warp
  int64_t sharedBytes;
  int64_t weightBytes = 0;
  unsigned nextName = 0;
};

/// Name of the table of rotary frequencies for `op`, and its definition.
std::string ropeTableName(RopeOp op);
std::string ropeTableDefinition(RopeOp op);

/// A C expression for the rotated element `index` (a flat index expression) of
/// `op`, with `at` its operand's elements.
std::string ropeElement(RopeOp op, const ElementExpr &at,
                        const std::string &index);

} // namespace mega

#endif // MEGA_LIB_TARGET_CUDA_STAGEEMITTER_H
