// SPDX-License-Identifier: Apache-2.0

#include "TinyKernel.h"

#include "Golden.h"

#include <algorithm>

using namespace megalith;

std::string idiomText(const std::string &file) {
  return "//===----- " + file + " -----===//\n" +
         readText(std::string(MEGALITH_DEVICE_DIR "/ptx/") + file);
}

/// Both halves of the barrier; only one thread looks at the word.
static const char *const gridBarrier = R"(
static __device__ void gridBarrier(void *counter) {
  mega::u32 before;
  const mega::GridBarrier barrier(static_cast<mega::u8 *>(counter),
                                  reinterpret_cast<mega::u8 *>(&before));
  barrier.arrive();
  barrier.wait();
}
)";

std::string TinyKernel::textFor(const std::string &body,
                                const std::string &idioms,
                                const std::string &ahead) {
  return "#ifndef MEGA_HOST_IDIOMS\n" + idiomText("bf16.cuh") +
         idiomText("memory.cuh") + idiomText("place.cuh") + idioms +
         "#endif // MEGA_HOST_IDIOMS\n"
         "struct Params {\n"
         "  const int *constants;\n  int *state, *output, *workspace;\n};\n" +
         (idioms.find("struct GridBarrier") == std::string::npos
              ? ""
              : gridBarrier) +
         ahead +
         "extern \"C\" __global__ void __launch_bounds__(64, 1)\n"
         "tiny(const Params p) {\n"
         "  extern __shared__ __align__(128) mega::u8 shared[];\n" +
         body + "\n}\n";
}

TinyKernel::TinyKernel(const std::string &body, SimShape shape,
                       const std::string &idioms,
                       const SimCompileOptions &options,
                       const std::string &ahead)
    : TinyKernel(ofText(textFor(body, idioms, ahead), shape, options)) {}

TinyKernel TinyKernel::ofText(const std::string &text, SimShape shape,
                              const SimCompileOptions &options) {
  TinyKernel tiny;
  auto kernel = SimKernel::compile(text, options);
  EXPECT_TRUE(kernel) << kernel.status().message();
  if (!kernel)
    return tiny;
  constexpr uint64_t bytes = 1024;
  auto made =
      SimMachine::create(*kernel, shape,
                         {{"constants", SimBuffer::Kind::Constant, bytes},
                          {"state", SimBuffer::Kind::State, bytes},
                          {"output", SimBuffer::Kind::Output, bytes},
                          {"workspace", SimBuffer::Kind::Workspace, bytes}});
  EXPECT_TRUE(made) << made.status().message();
  if (made)
    tiny.machine = std::move(*made);
  return tiny;
}

SimRun TinyKernel::run(SimOptions options) {
  if (!machine)
    return SimRun();
  TinyParams params = {reinterpret_cast<const int *>(machine->data(0)),
                       reinterpret_cast<int *>(machine->data(1)),
                       reinterpret_cast<int *>(machine->data(2)),
                       reinterpret_cast<int *>(machine->data(3))};
  auto run = machine->launch(&params, sizeof params, options);
  EXPECT_TRUE(run) << run.status().message();
  return run ? *run : SimRun();
}

void expectReport(const SimRun &run, SimReport::Kind kind,
                  std::initializer_list<const char *> parts) {
  ASSERT_FALSE(run.reports.empty());
  for (const SimReport &report : run.reports)
    EXPECT_EQ(report.kind, kind) << report.text;
  for (const char *part : parts)
    EXPECT_TRUE(std::any_of(run.reports.begin(), run.reports.end(),
                            [&](const SimReport &report) {
                              return report.text.find(part) !=
                                     std::string::npos;
                            }))
        << part << "\n"
        << run.reports.front().text;
}
