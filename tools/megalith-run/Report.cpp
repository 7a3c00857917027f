// SPDX-License-Identifier: Apache-2.0
/// \file
/// Tables on standard output, and the result file.

#include "Report.h"

#include "mega/runtime/Safetensors.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>

using namespace llvm;
using namespace mega::run;

static std::string idsText(ArrayRef<int32_t> ids) {
  return "[" +
         join(map_range(ids, [](int32_t id) { return std::to_string(id); }),
              " ") +
         "]";
}

void mega::run::printHeader(bool checked) {
  outs() << right_justify("context", 8) << right_justify("seed", 6)
         << right_justify("step us", 12) << right_justify("kernel us", 11)
         << right_justify("enqueue us", 12);
  if (checked)
    outs() << right_justify("cosine", 13) << right_justify("rel L2", 11)
           << right_justify("state rel", 11) << "  worst state"
           << "   outcome";
  outs() << "\n";
}

/// Cosine and relative error as columns.
static void printDistance(const Distance &distance) {
  outs() << format("%13.8f", distance.cosine)
         << format("%11.3e", distance.relative);
}

void mega::run::printRow(const CaseName &name, const CaseOutput &output,
                         const Verdict *verdict, StringRef outcome) {
  const std::vector<double> &times = output.hostMicroseconds;
  outs() << format("%8lld", static_cast<long long>(name.context))
         << format("%6llu", static_cast<unsigned long long>(name.seed))
         << format("%12.1f", *std::min_element(times.begin(), times.end()));
  if (output.stepTime.device > 0)
    outs() << format("%11.2f", output.stepTime.device)
           << format("%12.2f", output.stepTime.enqueue);
  else
    outs() << right_justify("-", 11) << right_justify("-", 12);
  if (verdict) {
    printDistance(verdict->worstHidden());
    auto [state, distance] = verdict->worstState();
    outs() << format("%11.3e", distance.relative) << "  "
           << left_justify(state, 11) << "   " << outcome;
  }
  outs() << "\n";
  outs().flush();
}

void mega::run::printDetails(const CaseOutput &output, const Verdict *verdict) {
  for (size_t step = 0; step < output.hidden.size(); ++step) {
    outs() << "  step " << step
           << format(": host %.1f us", output.hostMicroseconds[step]);
    if (verdict) {
      printDistance(verdict->hidden[step]);
      outs() << (verdict->routing[step].empty() ? "  same routing"
                                                : "  other routing");
    }
    outs() << "\n";
    for (const Choice &choice : output.choices[step])
      outs() << "    " << choice.probe << " " << idsText(choice.ids) << "\n";
  }
  if (!verdict)
    return;
  for (const auto &[name, distance] : verdict->states) {
    outs() << "  state " << left_justify(name, 16);
    printDistance(distance);
    outs() << "\n";
  }
}

void mega::run::printNoise(const Verdict &verdict) {
  for (auto [step, distance] : enumerate(verdict.hidden)) {
    outs() << "  noise of 0.1% at the input moves reference step " << step
           << " by";
    printDistance(distance);
    outs() << (verdict.routing[step].empty() ? "" : "  other routing") << "\n";
  }
}

void mega::run::printRouting(const Verdict &verdict) {
  for (auto [step, differences] : enumerate(verdict.routing))
    for (const RoutingDifference &difference : differences)
      outs() << "  step " << step << " router '" << difference.probe
             << "' chose " << idsText(difference.found) << ", reference "
             << idsText(difference.wanted) << " with gap "
             << format("%g", difference.gap) << "\n";
}

Error mega::run::writeOutput(const std::string &path,
                             const CaseOutput &output) {
  megalith::TensorMap map;
  for (auto [step, hidden] : enumerate(output.hidden)) {
    std::string prefix = "step" + std::to_string(step) + "/";
    map.tensors[prefix + "hidden_out"] = hidden;
    for (const Choice &choice : output.choices[step])
      map.tensors[prefix + choice.probe] = megalith::Tensor::copyOf(
          megalith::DType::I32, {static_cast<int64_t>(choice.ids.size())},
          choice.ids.data());
  }
  for (const auto &[name, tensor] : output.states.tensors)
    map.tensors["state_out/" + name] = tensor;
  megalith::Status status = megalith::writeSafetensors(path, map);
  if (!status.ok())
    return createStringError(status.message());
  return Error::success();
}
