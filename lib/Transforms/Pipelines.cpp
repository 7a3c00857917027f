// SPDX-License-Identifier: Apache-2.0
/// \file
/// The pipeline as prose: every pass with its reason.

#include "mega/Transforms/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"

using namespace mlir;

/// Level 0 to 1: what becomes which stages.
static void buildStages(OpPassManager &pm, const mega::StageOptions &options) {
  // Refuse early, while locations still point at the user's own text.
  pm.addPass(mega::createVerifyBlockPass());
  // Experts and latent attention need results of one stage in the next.
  pm.addPass(mega::createDecomposePass());
  // Fusion decides what is published, so it comes before any address or order.
  pm.addPass(mega::createFormStagesPass(
      {options.splitBelow, options.joinLinears, options.publishReused}));
  // Tiles and access relations are functions of the stages alone.
  pm.addPass(mega::createPartitionPass());
  pm.addPass(mega::createVerifyStagesPass());
}

/// Level 1 to 2: when they run.
static void buildSchedule(OpPassManager &pm,
                          const mega::ScheduleOptions &options) {
  if (options.file.empty())
    pm.addPass(
        mega::createSchedulePhasesPass({options.sync, options.waitLimit}));
  else
    pm.addPass(mega::createApplySchedulePass({options.file}));
  // The checker shares no decision with the scheduler.
  pm.addPass(mega::createVerifySchedulePass());
}

/// Level 2 to 3: where everything lies.
static void buildKernel(OpPassManager &pm) {
  // Lifetimes are ranges of phases, so memory comes after the schedule.
  pm.addPass(mega::createPlanMemoryPass());
  // Sharing bytes creates new hazards: check the plan and the schedule again.
  pm.addPass(mega::createVerifySchedulePass());
  pm.addPass(mega::createVerifyKernelPass());
}

void mega::buildPipeline(OpPassManager &pm, const ScheduleOptions &schedule,
                         const StageOptions &stages) {
  buildStages(pm, stages);
  buildSchedule(pm, schedule);
  buildKernel(pm);
}

void mega::registerPipelines() {
  PassPipelineRegistration<>("mega-pipeline",
                             "Lower a block to a kernel (level 0 to 3)",
                             [](OpPassManager &pm) { buildPipeline(pm); });
}
