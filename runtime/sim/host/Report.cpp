// SPDX-License-Identifier: Apache-2.0
/// \file
/// Findings in words.

#include "Kernel.h"
#include "Process.h"

#include "Error.h"

#include <map>
#include <sstream>

using namespace megalith;
using namespace megalith::sim;

/// Bytes from one counter of a set to the next, as in emitted text.
static constexpr uint64_t counterStride = 128;

namespace {
/// A line of the kernel's text, and the function that it was inlined from.
struct Frame {
  std::string function;
  size_t line;
};
/// Code offset to frames, innermost first.
using Frames = std::map<uint32_t, std::vector<Frame>>;
} // namespace

/// Asks addr2line, which comes with the compiler.
static Frames locate(const std::vector<Finding> &findings,
                     const SimKernel::Impl &kernel) {
  Frames frames;
  for (const Finding &finding : findings) {
    if (finding.now.place.code)
      frames[finding.now.place.code];
    if (finding.hasEarlier && finding.earlier.place.code)
      frames[finding.earlier.place.code];
  }
  if (frames.empty())
    return frames;
  std::vector<std::string> arguments = {"addr2line", "-a", "-C",          "-f",
                                        "-i",        "-e", kernel.library};
  // A return address lies behind its call.
  for (auto &[code, list] : frames)
    arguments.push_back(fmt::format("{:#x}", code - 1));
  std::string output;
  if (runProcess(arguments, output) != 0)
    return frames;
  std::istringstream stream(output);
  std::vector<Frame> *list = nullptr;
  for (std::string line, place; std::getline(stream, line);) {
    if (line.rfind("0x", 0) == 0) {
      auto at = frames.find(uint32_t(std::stoul(line, nullptr, 16)) + 1);
      list = at == frames.end() ? nullptr : &at->second;
      continue;
    }
    if (!std::getline(stream, place) || !list)
      continue;
    size_t colon = place.rfind(':');
    if (place.find("kernel.cu:") == std::string::npos)
      continue;
    list->push_back(
        {line, std::strtoul(place.c_str() + colon + 1, nullptr, 10)});
  }
  return frames;
}

/// A function's name without template arguments, parameters and namespaces.
static std::string shortName(const std::string &name) {
  std::string flat;
  int depth = 0;
  for (char c : name) {
    if (c == '<')
      ++depth;
    if (depth == 0 && c == '(' && flat.find("operator") == std::string::npos)
      break;
    if (depth == 0)
      flat += c;
    if (c == '>')
      --depth;
  }
  size_t space = flat.rfind(' ');
  if (space != std::string::npos)
    flat = flat.substr(space + 1);
  return flat;
}

static std::string trimmed(const std::string &line) {
  size_t begin = line.find_first_not_of(' ');
  return begin == std::string::npos ? "" : line.substr(begin, 100);
}

static std::string describePlace(const Place &place, const Frames &frames,
                                 const SimKernel::Impl &kernel) {
  const KernelText &text = kernel.text;
  std::string words;
  auto at = frames.find(place.code);
  if (at != frames.end() && !at->second.empty()) {
    const Frame &inner = at->second.front();
    words += fmt::format("\n    kernel.cu:{}: {}", inner.line,
                         inner.line >= 1 && inner.line <= text.lines.size()
                             ? trimmed(text.lines[inner.line - 1])
                             : "");
    words += "\n    in";
    size_t shown = 0;
    for (const Frame &frame : at->second) {
      if (++shown > 6)
        break;
      words += fmt::format(" {}{}:{}", shown == 1 ? "" : "< ",
                           shortName(frame.function), frame.line);
    }
  }
  if (place.stage == noStage)
    return words;
  const StageTable &table = kernel.program.stages;
  const uint32_t phase = table.phaseOf(place.stage);
  const uint32_t stage = place.stage - table.firstStage(phase);
  words += fmt::format("\n    phase {}", phase);
  if (phase < text.phases.size() && text.phases[phase].size() > 1)
    words += fmt::format(", stage {}", stage);
  if (phase < text.phases.size())
    words += ": " + text.phases[phase][stage];
  return words;
}

/// Which stages a counter orders, if the text says so.
static std::string describeCounter(uint64_t offset, const KernelText &text,
                                   const Arena &arena) {
  const Region *region = arena.find(offset);
  if (!region || region->kind != RegionKind::Workspace)
    return "";
  auto at = text.counters.upper_bound(offset - region->offset);
  if (at == text.counters.begin())
    return "";
  --at;
  return fmt::format("\n    counter {} of {}",
                     (offset - region->offset - at->first) / counterStride,
                     at->second);
}

static std::string describeThread(ThreadKey key, unsigned ctas) {
  if (key.cta() >= ctas)
    return fmt::format("the asynchronous copy of CTA {}, warp {}, lane {}",
                       key.cta() - ctas, key.warp(), key.lane());
  return fmt::format("CTA {}, warp {}, lane {}", key.cta(), key.warp(),
                     key.lane());
}

/// The order that would have to exist.
static std::string missingOrder(const Finding &finding, unsigned ctas) {
  ThreadKey now = finding.now.thread, earlier = finding.earlier.thread;
  if (earlier.cta() >= ctas)
    return "no wait on the copy's mbarrier or group";
  if (now.cta() >= ctas)
    return now.cta() - ctas == earlier.cta()
               ? "the copy's issuer is not ordered after that access, or no "
                 "fence.proxy.async stands between"
               : "no acquire and proxy fence by the copy's issuer";
  if (finding.now.what == std::string("wait") ||
      finding.earlier.what == std::string("wait"))
    return "an order of the change after the wait, which may miss what the "
           "change takes back, and then never ends: a reset that comes too "
           "early, or a barrier too few";
  if (finding.now.what == std::string("atomic store") ||
      finding.earlier.what == std::string("atomic store"))
    return "an order between the store and the other change, of which one is "
           "lost: two owners, or a barrier too few";
  if (now.cta() != earlier.cta())
    return "no release by the earlier CTA after its access reaches an acquire "
           "by the later CTA before its own: a grid barrier or a signal is "
           "missing or too weak";
  if (now.warp() != earlier.warp())
    return "no CTA barrier stands between them";
  return "no __syncwarp or CTA barrier stands between these lanes";
}

static std::string describeFinding(const Finding &finding, const Frames &frames,
                                   const SimKernel::Impl &kernel,
                                   const Arena &arena, unsigned ctas) {
  auto access = [&](const AccessInfo &info) {
    return fmt::format("{} by {}{}", info.what,
                       describeThread(info.thread, ctas),
                       describePlace(info.place, frames, kernel));
  };
  std::string where = finding.hasAddress
                          ? fmt::format("{} bytes at {}", finding.bytes,
                                        arena.describe(finding.offset))
                          : "";
  // What is wrong may be in words already.
  if (!finding.message.empty())
    return fmt::format("{}\n  {}{}{}", finding.message,
                       describeThread(finding.now.thread, ctas),
                       describePlace(finding.now.place, frames, kernel),
                       finding.hasAddress
                           ? describeCounter(finding.offset, kernel.text, arena)
                           : "");
  switch (finding.kind) {
  case SimReport::Kind::Race:
    return fmt::format("two accesses to {} have no order\n  {}\n  earlier {}\n"
                       "  missing: {}",
                       where, access(finding.now), access(finding.earlier),
                       missingOrder(finding, ctas));
  case SimReport::Kind::ConstantWritten:
    return fmt::format("ld.global.nc of {}, which this launch writes\n  {}\n"
                       "  earlier {}\n  missing: a load that is coherent, such "
                       "as ld.global.cg",
                       where, access(finding.now), access(finding.earlier));
  case SimReport::Kind::Poison:
    return fmt::format("{} are used and nobody wrote them in this launch\n  {}",
                       where, access(finding.now));
  case SimReport::Kind::OutOfBounds:
    return fmt::format("{} is no legal target\n  {}", where,
                       access(finding.now));
  default:
    return describeThread(finding.now.thread, ctas);
  }
}

std::vector<SimReport>
megalith::sim::describe(const std::vector<Finding> &findings,
                        const SimKernel::Impl &kernel, const Arena &arena,
                        unsigned ctas) {
  Frames frames = locate(findings, kernel);
  std::vector<SimReport> reports;
  for (const Finding &finding : findings)
    reports.push_back(
        {finding.kind,
         fmt::format("{}: {}", simReportName(finding.kind),
                     describeFinding(finding, frames, kernel, arena, ctas))});
  return reports;
}

const char *megalith::simReportName(SimReport::Kind kind) {
  switch (kind) {
  case SimReport::Kind::Race:
    return "race";
  case SimReport::Kind::ConstantWritten:
    return "constant load of written data";
  case SimReport::Kind::Poison:
    return "uninitialised value";
  case SimReport::Kind::OutOfBounds:
    return "out of bounds";
  case SimReport::Kind::Deadlock:
    return "deadlock";
  case SimReport::Kind::Livelock:
    return "livelock";
  case SimReport::Kind::Divergence:
    return "divergence";
  case SimReport::Kind::StackOverflow:
    return "stack overflow";
  }
  return "";
}

std::vector<std::pair<std::string, SimPolicy>> megalith::simPolicies() {
  return {{"round-robin", SimPolicy::RoundRobin},
          {"reverse", SimPolicy::Reverse},
          {"random", SimPolicy::Random},
          {"starve", SimPolicy::Starve},
          {"last-arriver", SimPolicy::LastArriver}};
}
