// SPDX-License-Identifier: Apache-2.0

#include "Mutants.h"

#include "Prelude.h"

#include <cctype>
#include <regex>
#include <set>

namespace {

/// Collects mutants of one text.
class Collector {
public:
  explicit Collector(const std::string &text) : text(text) {}

  /// Replaces each occurrence of `from` in turn. `from` stands in the fenced
  /// idioms, behind them, or anywhere.
  enum class Part { Idioms, Body };
  void each(const std::string &kind, Part part, const std::string &from,
            const std::string &to);
  /// Replaces the only occurrence of `from` in a twin.
  void twin(const std::string &kind, const std::string &file,
            const std::string &from, const std::string &to);
  void barriers();
  void workspaceReuse();

  std::vector<Mutant> mutants;

private:
  size_t fence() const { return text.find("#endif // MEGA_HOST_IDIOMS"); }
  /// The function whose text holds position `at`.
  std::string functionAt(size_t at) const;
  void add(const std::string &kind, size_t at, const std::string &mutated);

  const std::string &text;
  std::map<std::string, int> numbers;
};

} // namespace

std::string Collector::functionAt(size_t at) const {
  // The last line before `at` that has a parameter list after __device__.
  size_t device = text.rfind("__device__", at);
  size_t global = text.rfind("__global__", at);
  if (device == std::string::npos ||
      (global != std::string::npos && global > device))
    return "kernel";
  size_t open = text.find('(', device), begin = open;
  while (begin > 0 &&
         (std::isalnum(static_cast<unsigned char>(text[begin - 1])) ||
          text[begin - 1] == '_'))
    --begin;
  return text.substr(begin, open - begin);
}

void Collector::add(const std::string &kind, size_t at,
                    const std::string &mutated) {
  std::string name = kind + " " + functionAt(at);
  name += " #" + std::to_string(++numbers[name]);
  mutants.push_back({name, mutated, {}});
}

void Collector::each(const std::string &kind, Part part,
                     const std::string &from, const std::string &to) {
  size_t begin = part == Part::Idioms ? 0 : fence();
  size_t end = part == Part::Idioms ? fence() : text.size();
  for (size_t at = text.find(from, begin); at < end;
       at = text.find(from, at + from.size())) {
    std::string mutated = text;
    mutated.replace(at, from.size(), to);
    add(kind, at, mutated);
  }
}

void Collector::twin(const std::string &kind, const std::string &file,
                     const std::string &from, const std::string &to) {
  if (text.find("//===----- " + file + ".cuh") == std::string::npos)
    return;
  std::string path = "idioms/" + file + ".h";
  for (auto [name, content] : megalith::sim::preludeFiles()) {
    if (name != path)
      continue;
    std::string mutated(content);
    size_t at = mutated.find(from);
    if (at == std::string::npos)
      continue;
    mutated.replace(at, from.size(), to);
    mutants.push_back({kind + " " + file, text, {{path, mutated}}});
  }
}

void Collector::barriers() {
  const std::string call = "mega::GridBarrier::arriveAndWait(";
  size_t at = text.find(call, fence());
  size_t loop = text.rfind("for (int phase = 0; phase < ", at);
  if (at == std::string::npos)
    return;
  if (loop == std::string::npos) {
    each("drop-barrier", Part::Body, call, "(void)(");
    return;
  }
  int phases = std::stoi(text.substr(loop + 28));
  for (int phase = 0; phase + 1 < phases; ++phase) {
    std::string mutated = text;
    mutated.insert(at, "if (phase != " + std::to_string(phase) + ") ");
    mutants.push_back(
        {"drop-barrier after phase " + std::to_string(phase), mutated, {}});
  }
  // One CTA skips one barrier: the others must be reported as waiting.
  std::string mutated = text;
  mutated.insert(at, "if (phase != 1 || blockIdx.x != 1) ");
  mutants.push_back({"one CTA skips the barrier after phase 1", mutated, {}});
}

/// Puts each operand of a phase where another one of the same phase lies.
void Collector::workspaceReuse() {
  static const std::regex row(R"((\d+), // (\S+))");
  size_t begin = fence();
  for (;;) {
    size_t table = text.find("> kArguments", begin);
    table = text.find(" kArguments", begin);
    if (table == std::string::npos)
      return;
    size_t end = text.find("\n};", table);
    if (text.compare(table, 11, " kArguments") != 0 ||
        text.find("[] = {", table) > text.find('\n', table)) {
      begin = table + 11;
      continue;
    }
    // The first instance only: the others are the same code.
    end = std::min(end, text.find("\n    }", table));
    std::vector<std::pair<size_t, std::string>> values;
    std::string body = text.substr(table, end - table);
    for (std::sregex_iterator it(body.begin(), body.end(), row), last;
         it != last; ++it) {
      // Weights are named blocks.*; a stage's result has an op's name behind.
      std::string name = (*it)[2];
      bool workspace =
          name.find('#') != std::string::npos ||
          name.find('.') == std::string::npos ||
          std::regex_search(
              name,
              std::regex(
                  R"(\.(linear|latent_\w+|rms_norm|expert_\w+|router)(\.\d+)?(#\d+)?$)"));
      if (workspace)
        values.emplace_back(table + size_t(it->position(1)), (*it)[1]);
    }
    for (size_t i = 0; i + 1 < values.size(); ++i) {
      if (values[i].second == values[i + 1].second)
        continue;
      std::string mutated = text;
      mutated.replace(values[i].first, values[i].second.size(),
                      values[i + 1].second);
      mutants.push_back({"reuse-scratch table at line of " +
                             text.substr(table + 1, 12) + " #" +
                             std::to_string(i),
                         mutated,
                         {}});
    }
    begin = end;
  }
}

std::vector<Mutant> makeMutants(const std::string &text) {
  using Part = Collector::Part;
  Collector c(text);
  c.barriers();
  // Orders and scopes, in the idioms' own instructions.
  c.each("relaxed-for-release", Part::Idioms, "atom.add.release.gpu",
         "atom.add.relaxed.gpu");
  c.each("relaxed-for-acquire", Part::Idioms, "ld.acquire.gpu",
         "ld.relaxed.gpu");
  c.each("cta-for-gpu", Part::Idioms, "atom.add.release.gpu",
         "atom.add.release.cta");
  c.each("cta-for-gpu", Part::Idioms, "ld.acquire.gpu", "ld.acquire.cta");
  c.each("nc-for-cg", Part::Idioms, "\"ld.global.cg", "\"ld.global.nc");
  c.each("drop-syncthreads", Part::Idioms, "  __syncthreads();", "  ;");
  c.each("drop-syncwarp", Part::Idioms, "  __syncwarp();", "  ;");
  c.each("drop-proxy-fence", Part::Body, "mega::fenceAsyncProxy();", ";");
  c.each("drop-syncthreads", Part::Body, "__syncthreads();", ";");
  c.each("drop-syncwarp", Part::Body, "__syncwarp();", ";");
  // Targets and counts.
  c.twin("target-lower", "grid_barrier", "gridDim.x - 1", "gridDim.x - 2");
  c.twin("target-higher", "grid_barrier", "gridDim.x - 1", "gridDim.x");
  c.twin("arrive-twice", "grid_barrier", ": 1u", ": 2u");
  c.twin("arrivals-too-many", "unit_ring", "slot, 1)", "slot, 2)");
  c.twin("bytes-lower", "unit_ring", "slot, bytes);", "slot, bytes - 16);");
  c.twin("bytes-higher", "unit_ring", "slot, bytes);", "slot, bytes + 16);");
  c.twin("parity-inverted", "unit_ring", "taken / kSlots % 2",
         "1 - taken / kSlots % 2");
  c.twin("parity-stuck", "unit_ring", "taken / kSlots % 2", "0");
  c.twin("no-wait", "unit_ring",
         "mega_sim_api->mbarrierWait(barriers + slot, taken / kSlots % 2);",
         ";");
  c.twin("wait-for-next", "unit_ring", "base + slot * kSlotBytes, units",
         "base + (slot + 1) % kSlots * kSlotBytes, units");
  c.each("ring-overfull", Part::Body, "ring.pending() < Ring::kDepth",
         "ring.pending() <= Ring::kDepth");
  c.each("no-release", Part::Body, "ring.release();", ";");
  c.each("release-early", Part::Body, "if (i + 1 == units) {", "if (i == 0) {");
  // Who does what.
  c.each("share-end", Part::Body,
         "int(u32(total) * u64(part + 1) / u32(parts))",
         "int(u32(total) * u64(part + 1) / u32(parts)) + 1");
  c.each("share-end", Part::Body,
         "int(u32(total) * u64(part + 1) / u32(parts))",
         "int(u32(total) * u64(part + 1) / u32(parts)) - 1");
  c.each("share-begin", Part::Body, "int(u32(total) * u64(part) / u32(parts))",
         "int(u32(total) * u64(part) / u32(parts)) + 1");
  c.each("owner", Part::Body, "* u32(parts) - 1) / u32(total)",
         "* u32(parts)) / u32(total)");
  c.each("owner-count", Part::Body, "end - begin + 1}", "end - begin}");
  c.each("own-nobody", Part::Body, "blockIdx.x, gridDim.x);",
         "blockIdx.x + 1, gridDim.x);");
  c.each("one-thread-less", Part::Body, "if (threadIdx.x < 32)",
         "if (threadIdx.x < 31)");
  c.each("other-thread", Part::Body, "if (threadIdx.x % 32 == 0)",
         "if (threadIdx.x % 32 <= 1)");
  // Shared memory changes hands too early.
  c.each("shared-overlap", Part::Body, "reinterpret_cast<float *>(shared + ",
         "reinterpret_cast<float *>(shared + 0 * ");
  c.workspaceReuse();
  return c.mutants;
}
