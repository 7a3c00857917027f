// SPDX-License-Identifier: Apache-2.0
//
// Passes in pipeline order; lib/Transforms/Pipelines.cpp says why each is where
// it is.

#ifndef MEGA_TRANSFORMS_PASSES_TD
#define MEGA_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

//===----------------------------------------------------------------------===//
// Level 0
//===----------------------------------------------------------------------===//

def VerifyBlockPass : Pass<"mega-verify-block", "::mlir::ModuleOp"> {
  let summary = "Check that a module is at level 0 and complete";
  let description = [{
    Exactly one `mega.block`, a `mega.target` on the module, no op of a lower
    level, and for each op a form that the compiler can lower. One op updates
    each state, before any op reads it, and ops that share a packed weight
    agree on what it is packed with.
  }];
}

def DecomposePass : Pass<"mega-decompose", "::mlir::ModuleOp"> {
  let summary = "Break ops that need several stages into their parts";
  let description = [{
    1. `mega.experts` becomes `mega.expert_gate_up` and `mega.expert_down`.
    2. An absorbed `mega.latent_attention` becomes `mega.latent_query`,
       `mega.latent_scores` with one tile for each CTA of the target, and
       `mega.latent_value`.
    3. Anything whose result nobody reads goes.
  }];
}

def FormStagesPass : Pass<"mega-form-stages", "::mlir::ModuleOp"> {
  let summary = "Turn a block into stages over buffers (level 0 to 1)";
  let description = [{
    1. Each anchor starts a stage; linears of one operand share a stage if
       their weights are packed alike.
    2. Anchors whose tile list fills the grid badly and whose readers can add
       partial sums are split.
    3. Tile-local consumers of a complete anchor become its epilogue.
    4. What remains is recomputed by every CTA of the stages that read it; the
       earliest such stage publishes it if a later one needs it again.
  }];
  let options = [
    Option<"splitBelow", "split-below", "double", "0.9",
           "split anchors whose tiles keep less of the grid busy">,
    Option<"joinLinears", "join-linears", "bool", "true",
           "linears of one operand share a stage">,
    Option<"publishReused", "publish-reused", "bool", "true",
           "publish what later stages need again; otherwise they compute it "
           "again">
  ];
}

//===----------------------------------------------------------------------===//
// Level 1
//===----------------------------------------------------------------------===//

def PartitionPass : Pass<"mega-partition", "::mlir::ModuleOp"> {
  let summary = "Give anchors their tiles and transfers their access relations";
}

def VerifyStagesPass : Pass<"mega-verify-stages", "::mlir::ModuleOp"> {
  let summary = "Check that a program is partitioned (level 1)";
}

def SchedulePhasesPass : Pass<"mega-schedule-phases", "::mlir::ModuleOp"> {
  let summary = "Order stages into phases with grid barriers (level 1 to 2)";
  let description = [{
    Each stage runs as early as its dependences (read after write, write after
    read, write after write, through buffers and state) allow; a barrier stands
    between consecutive phases and lists the dependences that it covers. The
    number of barriers is minimal for the chosen synchronisation; the attribute
    `mega.barrier_chain` of the program is the proof, one dependence that needs
    a barrier for each of them, every one after the one before.

    With `sync=counters`, a stage shares the phase of one that it depends on if
    counters can order their tiles: one counter for each independent group of
    tiles (a head, a column strip), or one for the stage, as long as no counter
    stands for more than `wait-limit` tiles. What such a stage reads of the
    other's prologue it computes again.
  }];
  let options = [
    Option<"sync", "sync", "::mega::Synchronization",
           "::mega::Synchronization::Barriers",
           "what may order two stages",
           [{::llvm::cl::values(
             clEnumValN(::mega::Synchronization::Barriers, "barriers",
                        "grid barriers"),
             clEnumValN(::mega::Synchronization::Counters, "counters",
                        "grid barriers and counters"))}]>,
    Option<"waitLimit", "wait-limit", "int64_t", "64",
           "tiles that one counter may stand for">
  ];
}

def ApplySchedulePass : Pass<"mega-apply-schedule", "::mlir::ModuleOp"> {
  let summary = "Order stages as a schedule file says (level 1 to 2)";
  let description = [{
    The other way from level 1 to 2. The file names the stages of each phase and
    the pairs of stages that counters order (docs/schedules.md). What a stage
    reads of a prologue in its own phase it computes again.
  }];
  let options = [
    Option<"file", "file", "std::string", "", "the schedule file (JSON)">
  ];
}

//===----------------------------------------------------------------------===//
// Level 2
//===----------------------------------------------------------------------===//

def VerifySchedulePass : Pass<"mega-verify-schedule", "::mlir::ModuleOp"> {
  let summary = "Check that every dependence is ordered (level 2)";
  let description = [{
    Accepts or rejects any schedule, whoever wrote it. Two stages that touch one
    element of a buffer or state, at least one of them writing, must be ordered
    in program order: by a barrier between them, or by counters, tile by tile,
    directly or through stages between them. Tiles of one stage must not touch
    each other's elements. Every buffer that is read must have been written.

    Counters: every wait expects all signals that its counter gets in a step;
    the stages that signal stand before those that wait, so that no wait is
    endless; a set has one reset, which barriers separate from its signals and
    waits.
  }];
}

def PlanMemoryPass : Pass<"mega-plan-memory", "::mlir::ModuleOp"> {
  let summary = "Assign workspace and weight addresses (level 2 to 3)";
  let description = [{
    Buffers that are never live in one phase share bytes. Weights are packed in
    the order in which the kernel reads them.
  }];
}

//===----------------------------------------------------------------------===//
// Level 3
//===----------------------------------------------------------------------===//

def VerifyKernelPass : Pass<"mega-verify-kernel", "::mlir::ModuleOp"> {
  let summary = "Check that a kernel's memory plan is sound (level 3)";
  let description = [{
    Every buffer has an aligned offset inside the workspace, after the grid
    barrier's counter, and a grid barrier stands between the live ranges of
    buffers that share bytes.
  }];
}

//===----------------------------------------------------------------------===//
// Reports
//===----------------------------------------------------------------------===//

def PrintDependencesPass
    : Pass<"mega-print-dependences", "::mlir::ModuleOp"> {
  let summary = "Print which stages depend on which, and which tiles";
  let description = [{
    One line for each dependence between accesses of two stages of a partitioned
    program, with its shape (all-to-all, tile-local, scalar, index) and an
    example of a tile and the tiles that it waits for. After plan-memory, also
    dependences between buffers that share bytes. Dependences of a step on the
    step before come last.
  }];
}

#endif // MEGA_TRANSFORMS_PASSES_TD
