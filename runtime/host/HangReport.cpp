// SPDX-License-Identifier: Apache-2.0

#include "HangReport.h"

#include "Error.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>

using namespace megalith;

namespace {

uint32_t wordAt(const std::vector<uint8_t> &workspace, uint64_t offset) {
  uint32_t word = 0;
  if (offset + sizeof word <= workspace.size())
    std::memcpy(&word, workspace.data() + offset, sizeof word);
  return word;
}

const ProbeDesc *findProbe(const Manifest &manifest, const char *name) {
  for (const ProbeDesc &probe : manifest.probes)
    if (probe.tensor.name == name && probe.tensor.dtype == DType::I32)
      return &probe;
  return nullptr;
}

/// Where a CTA is. Ordered by how far it has come.
struct Place {
  int64_t phase = -1; ///< -1: in none yet
  bool ended = false; ///< waits behind the phase
  bool operator<(const Place &other) const {
    return std::make_pair(phase, ended) <
           std::make_pair(other.phase, other.ended);
  }
};

/// Each CTA's word is 1 + the phase it began last.
std::optional<std::vector<Place>>
placesByProgress(const Manifest &manifest, int grid,
                 const std::vector<uint8_t> &workspace) {
  const ProbeDesc *probe = findProbe(manifest, progressProbe);
  if (!probe || probe->tensor.bytes < uint64_t(grid) * 4)
    return std::nullopt;
  std::vector<Place> places(grid);
  for (int cta = 0; cta < grid; ++cta)
    places[cta].phase =
        int64_t(wordAt(workspace, probe->offset + 4 * uint64_t(cta))) - 1;
  return places;
}

/// Clock stamps of each phase's begin and end. They stay from launch to launch,
/// but within one they only rise, so the first that does not is old.
std::optional<std::vector<Place>>
placesByStamps(const Manifest &manifest, int grid,
               const std::vector<uint8_t> &workspace) {
  const ProbeDesc *probe = findProbe(manifest, stampsProbe);
  if (!probe || probe->tensor.shape.size() != 3)
    return std::nullopt;
  int64_t phases = probe->tensor.shape[0];
  if (probe->tensor.shape[1] < grid || probe->tensor.shape[2] != 2)
    return std::nullopt;
  std::vector<Place> places(grid);
  for (int cta = 0; cta < grid; ++cta) {
    // The clock wraps, so only differences mean anything.
    uint32_t last = 0;
    for (int64_t phase = 0; phase < phases; ++phase) {
      uint64_t at = probe->offset + (uint64_t(phase) * grid + cta) * 8;
      uint32_t begin = wordAt(workspace, at), end = wordAt(workspace, at + 4);
      if (phase > 0 && int32_t(begin - last) < 0)
        break;
      places[cta].phase = phase;
      places[cta].ended = begin != end && int32_t(end - begin) >= 0;
      last = end;
      if (!places[cta].ended)
        break;
    }
  }
  return places;
}

std::string placeText(const Manifest &manifest, const Place &place) {
  if (place.phase < 0)
    return "before the first phase";
  std::string text =
      fmt::format("{} phase {}", place.ended ? "behind" : "in", place.phase);
  if (uint64_t(place.phase) < manifest.phases.size()) {
    std::string stages;
    for (const std::string &stage : manifest.phases[place.phase].stages)
      stages += (stages.empty() ? "" : ", ") + quote(stage);
    text += " (" + stages + ")";
  }
  return text;
}

/// "3, 4 and 12 more".
std::string listText(const std::vector<int> &ctas) {
  constexpr size_t listed = 4;
  std::string text;
  for (size_t i = 0; i < std::min(listed, ctas.size()); ++i)
    text += fmt::format("{}{}", i ? ", " : "", ctas[i]);
  if (ctas.size() > listed)
    text += fmt::format(" and {} more", ctas.size() - listed);
  return text;
}

/// The counter of runtime/device/ptx/grid_barrier.cuh: each arrival adds 1,
/// CTA 0's adds 2^31 - (CTAs - 1).
std::string barrierText(uint32_t word, int grid) {
  uint32_t low = word & 0x7fffffffu;
  uint32_t first = 0x80000000u - uint32_t(grid - 1);
  bool zero = grid > 1 && low >= first;
  uint32_t others = zero ? low - first : low;
  if (low == 0)
    return fmt::format("nobody waits (counter {:#x})", word);
  if (others >= uint32_t(grid))
    return fmt::format("counter {:#x} is none that {} ctas can make", word,
                       grid);
  return fmt::format("{} of {} ctas have arrived, cta 0 is {} them (counter "
                     "{:#x})",
                     others + (zero ? 1 : 0), grid,
                     zero ? "among" : "not among", word);
}

/// A set's counters that hold signals: somebody waits for more, or never will.
std::string countersText(const PersistentDesc &span,
                         const std::vector<uint8_t> &workspace) {
  constexpr uint64_t listed = 4;
  uint64_t stride = span.bytes / span.count, held = 0;
  std::string values;
  for (uint64_t i = 0; i < span.count; ++i) {
    uint32_t word = wordAt(workspace, span.offset + i * stride);
    if (word == 0)
      continue;
    if (held < listed)
      values += fmt::format("{}[{}] = {}", held ? ", " : "", i, word);
    ++held;
  }
  if (held == 0)
    return "all are 0";
  return fmt::format("{} of {} are not 0: {}{}", held, span.count, values,
                     held > listed ? ", ..." : "");
}

} // namespace

std::string megalith::describeHang(const Manifest &manifest, int grid,
                                   const std::vector<uint8_t> &workspace) {
  std::vector<std::string> parts;
  auto places = placesByProgress(manifest, grid, workspace);
  if (!places)
    places = placesByStamps(manifest, grid, workspace);
  if (places) {
    std::map<Place, std::vector<int>> groups;
    for (int cta = 0; cta < grid; ++cta)
      groups[(*places)[cta]].push_back(cta);
    // Those least far come first: the others wait for them.
    for (const auto &[place, ctas] : groups)
      parts.push_back(fmt::format("{} of {} ctas {} ({})", ctas.size(), grid,
                                  placeText(manifest, place), listText(ctas)));
  } else {
    parts.push_back("the bundle keeps no word of progress (megalithc "
                    "--instrument makes one that does)");
  }
  if (manifest.persistent)
    for (const PersistentDesc &span : *manifest.persistent)
      if (span.kind == "grid_barrier")
        parts.push_back(
            fmt::format("grid barrier at workspace + {}: {}", span.offset,
                        barrierText(wordAt(workspace, span.offset), grid)));
  if (manifest.persistent)
    for (const PersistentDesc &span : *manifest.persistent)
      if (span.kind == "counters")
        parts.push_back(fmt::format("counters {}: {}", quote(span.name),
                                    countersText(span, workspace)));
  return fmt::format("{}", fmt::join(parts, "; "));
}
