// SPDX-License-Identifier: Apache-2.0

#include "Mutants.h"

#include "KernelText.h"
#include "Prelude.h"

#include <algorithm>
#include <cctype>
#include <regex>
#include <set>

namespace {

/// Collects mutants of one text.
class Collector {
public:
  explicit Collector(const std::string &text)
      : text(text), facts(megalith::sim::readKernelText(text)) {}

  /// Replaces each occurrence of `from` in turn, in the fenced idioms or behind
  /// them.
  enum class Part { Idioms, Body };
  void each(const std::string &kind, Part part, const std::string &from,
            const std::string &to);
  /// Replaces `from` in the opcode of each idiom instruction that has it, as a
  /// part between dots, in turn.
  void opcodes(const std::string &kind, const std::string &from,
               const std::string &to);
  /// As `each` behind the idioms, if the text has the building block `file`,
  /// which must then have `from`.
  void tile(const std::string &kind, const std::string &file,
            const std::string &from, const std::string &to);
  /// Replaces the first occurrence of `from` in a twin.
  void twin(const std::string &kind, const std::string &file,
            const std::string &from, const std::string &to);
  /// A call of a stage's function: where its name stands, and the name.
  struct Call {
    size_t at;
    std::string function;
  };
  std::vector<std::vector<Call>> stageCalls() const;
  void barriers();
  void counters();
  void workspaceReuse();

  std::vector<Mutant> mutants;
  /// What twins and building blocks should hold for their mutants and do not.
  std::vector<std::string> missing;

private:
  size_t fence() const { return text.find("#endif // MEGA_HOST_IDIOMS"); }
  /// The function whose text holds position `at`.
  std::string functionAt(size_t at) const;
  /// The idiom's struct whose text holds position `at`; may be empty.
  std::string structAt(size_t at) const;
  /// Whether the kernel uses the function that holds position `at`.
  bool isCalled(const std::string &function, size_t at) const;
  void add(const std::string &kind, size_t at, const std::string &mutated);

  const std::string &text;
  const megalith::sim::KernelText facts;
  std::map<std::string, int> numbers;
};

} // namespace

/// Without the number of the stage, which changes with every other one, and
/// what fills the name up.
static std::string withoutNumber(const std::string &function) {
  static const std::regex number(R"(stage_\d+_|_+$)");
  return std::regex_replace(function, number, "");
}

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

std::string Collector::structAt(size_t at) const {
  const std::string opens = "struct ", closes = "\n};";
  const size_t begin = text.rfind(opens, at), end = text.rfind(closes, at);
  if (at >= fence() || begin == std::string::npos ||
      (end != std::string::npos && end > begin))
    return "";
  const size_t name = begin + opens.size();
  return text.substr(name, text.find(' ', name) - name);
}

bool Collector::isCalled(const std::string &function, size_t at) const {
  if (function == "kernel")
    return true;
  // Others of that name may be called.
  if (const std::string type = structAt(at);
      !type.empty() && text.find(type, fence()) == std::string::npos)
    return false;
  // Behind the idioms there is also the definition of what stands there.
  size_t needed = at < fence() ? 1 : 2;
  for (size_t found = text.find(function, fence()); found != std::string::npos;
       found = text.find(function, found + 1)) {
    const char next = text[found + function.size()];
    if ((next == '(' || next == '<') && --needed == 0)
      return true;
  }
  return false;
}

void Collector::add(const std::string &kind, size_t at,
                    const std::string &mutated) {
  const std::string function = functionAt(at);
  if (!isCalled(function, at))
    return;
  const std::string type = structAt(at);
  std::string name =
      kind + " " + (type.empty() ? "" : type + "::") + withoutNumber(function);
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

void Collector::tile(const std::string &kind, const std::string &file,
                     const std::string &from, const std::string &to) {
  if (text.find("//===----- " + file + ".cuh") == std::string::npos)
    return;
  if (text.find(from, fence()) == std::string::npos)
    missing.push_back(kind + ": " + file + ".cuh has no '" + from + "'");
  each(kind, Part::Body, from, to);
}

void Collector::opcodes(const std::string &kind, const std::string &from,
                        const std::string &to) {
  static const std::regex opcode(R"re("((?:atom|red|ld|st|fence)\.[\w.:]+))re");
  const std::string idioms = text.substr(0, fence());
  for (std::sregex_iterator it(idioms.begin(), idioms.end(), opcode), end;
       it != end; ++it) {
    const std::string whole = (*it)[1];
    size_t part = whole.find("." + from);
    // The mbarrier's fence exists in one strength.
    if (part == std::string::npos ||
        whole.find("mbarrier_init") != std::string::npos ||
        (part + 1 + from.size() < whole.size() &&
         whole[part + 1 + from.size()] != '.'))
      continue;
    const size_t at = size_t(it->position(1)) + part + 1;
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
    if (at == std::string::npos) {
      missing.push_back(kind + ": the twin " + path + " has no '" + from + "'");
      return;
    }
    mutated.replace(at, from.size(), to);
    mutants.push_back({kind + " " + file, text, {{path, mutated}}});
  }
}

/// Where stage calls stand in the schedule: phase by phase, in order.
std::vector<std::vector<Collector::Call>> Collector::stageCalls() const {
  static const std::regex call(
      R"(mega::atPhase\(\d+\);|bursts = (stage_\w+)\()");
  std::vector<std::vector<Call>> calls;
  const std::string schedule = text.substr(text.rfind("__global__"));
  for (std::sregex_iterator it(schedule.begin(), schedule.end(), call), last;
       it != last; ++it)
    if (!(*it)[1].matched)
      calls.emplace_back();
    else if (!calls.empty())
      calls.back().push_back(
          {text.rfind("__global__") + size_t(it->position(1)), (*it)[1].str()});
  return calls;
}

/// Lets `call` run a copy of its function in which `from` is `to`.
static void callCopy(std::string &text, const std::string &original,
                     size_t &shift, size_t at, const std::string &function,
                     const std::string &from, const std::string &to,
                     const std::string &suffix) {
  const std::string name = " " + function + "(";
  const size_t begin = original.rfind("static __device__", original.find(name));
  const size_t end = original.find("\n}\n", begin) + 3;
  std::string copy = original.substr(begin, end - begin);
  copy.replace(copy.find(name), name.size(), " " + function + suffix + "(");
  for (size_t found = copy.find(from); found != std::string::npos;
       found = copy.find(from, found + to.size()))
    copy.replace(found, from.size(), to);
  const size_t entry = text.rfind("extern \"C\"");
  text.insert(entry, copy + "\n");
  shift += copy.size() + 1;
  text.insert(at + shift + function.size(), suffix);
  shift += suffix.size();
}

void Collector::barriers() {
  const auto calls = stageCalls();
  if (calls.empty() || calls.front().empty()) {
    // A text of tests' own: its first call goes.
    const size_t at = text.rfind("    gridBarrier(");
    if (at == std::string::npos)
      return;
    std::string mutated = text;
    mutated.insert(at, "if (false) ");
    mutants.push_back({"drop-barrier kernel #1", mutated, {}});
    return;
  }
  auto withoutBarrier = [&](size_t phase, const std::string &condition) {
    std::string mutated = text;
    size_t shift = 0;
    for (auto [call, statement] :
         {std::pair(calls[phase].back(), "barrier.arrive();"),
          std::pair(calls[phase + 1].front(), "barrier.wait();")})
      callCopy(mutated, text, shift, call.at, call.function, statement,
               condition + statement,
               std::string(statement) == "barrier.wait();" ? "_b" : "_a");
    return mutated;
  };
  for (size_t phase = 0; phase + 1 < calls.size(); ++phase) {
    const std::string stage = facts.phases[phase].back();
    mutants.push_back(
        {"drop-barrier after " + stage.substr(0, stage.find(" (")),
         withoutBarrier(phase, "if (false) "),
         {}});
  }
  // One CTA skips one barrier: the others must be reported as waiting.
  if (calls.size() > 2)
    mutants.push_back({"one CTA skips a barrier",
                       withoutBarrier(1, "if (blockIdx.x != 1) "),
                       {}});
}

/// The end of the call whose parenthesis opens at `open`, behind it; and where
/// its last argument begins.
static size_t endOfCall(const std::string &text, size_t open, size_t &last) {
  int depth = 0;
  last = open + 1;
  for (size_t at = open; at < text.size(); ++at) {
    const char c = text[at];
    depth += c == '(' || c == '{' || c == '[';
    depth -= c == ')' || c == '}' || c == ']';
    if (depth == 1 && c == ',')
      last = at + 1;
    if (depth == 0)
      return at + 1;
  }
  return text.size();
}

/// Idioms that are told apart by their instructions: a signal adds with
/// release, a wait polls with acquire, a reset stores. What does both, like a
/// grid barrier, has mutants of its own.
void Collector::counters() {
  std::map<std::string, std::set<char>> does; // s, w, r
  for (const megalith::sim::TextInstruction &instruction : facts.instructions) {
    const std::string head =
        instruction.opcode.substr(0, instruction.opcode.find('.'));
    const bool acquires =
        instruction.opcode.find(".acquire") != std::string::npos;
    const bool atomic =
        acquires || instruction.opcode.find(".relaxed") != std::string::npos ||
        instruction.opcode.find(".release") != std::string::npos;
    if (head == "red" || head == "atom")
      does[instruction.function].insert('s');
    else if (head == "ld" && acquires)
      does[instruction.function].insert('w');
    else if (head == "st" && atomic)
      does[instruction.function].insert('r');
  }
  std::string reset;
  for (const auto &[function, kinds] : does)
    if (kinds == std::set<char>{'r'})
      reset = function;
  for (const auto &[function, kinds] : does) {
    if (kinds.size() != 1)
      continue;
    const char kind = *kinds.begin();
    const std::string noun = kind == 's'   ? "signal"
                             : kind == 'w' ? "wait"
                                           : "reset";
    const std::string name = "mega::" + function + "(";
    for (size_t at = text.find(name, fence()); at != std::string::npos;
         at = text.find(name, at + 1)) {
      size_t last;
      const size_t open = at + name.size() - 1;
      const size_t end = endOfCall(text, open, last);
      const std::string call = text.substr(at, end - at);
      auto replaced = [&](const std::string &instead) {
        return text.substr(0, at) + instead + text.substr(end);
      };
      const std::string argument = text.substr(last, end - 1 - last);
      auto lastBecomes = [&](const std::string &change) {
        return text.substr(0, last) + " (" + argument + ")" + change +
               text.substr(end - 1);
      };
      add("drop-" + noun, at, replaced("(void)0"));
      if (kind == 'w' && !reset.empty()) {
        // By CTA 0 as soon as it has seen the counter itself.
        const std::string counter = text.substr(open + 1, last - open - 2);
        add("reset-early", at,
            replaced("({ " + call +
                     "; if (blockIdx.x == 0) if (threadIdx.x == "
                     "0) mega::" +
                     reset + "(" + counter + "); })"));
      }
      if (kind == 'w') {
        add("target-lower", at, lastBecomes(" - 1"));
        add("target-higher", at, lastBecomes(" + 1"));
      }
      if (kind == 's')
        add("signal-twice", at, replaced("(" + call + ", " + call + ")"));
    }
  }
}

/// Puts each operand of a stage where another one of the same stage lies.
void Collector::workspaceReuse() {
  static const std::regex structure(
      R"(operands of (\S+) lie\.\nstruct (Arguments\d+) \{([^}]*)\})");
  static const std::regex row(R"(mega::(\w+)\((\d+)\)(?:, // (\S+))?)");
  const std::string after = text.substr(fence());
  for (std::sregex_iterator it(after.begin(), after.end(), structure), last;
       it != last; ++it) {
    const std::string function = withoutNumber((*it)[1]);
    const std::string fields = (*it)[3];
    const size_t count = std::count(fields.begin(), fields.end(), '*');
    const size_t table = text.find("    // " + (*it)[2].str() + "\n", fence());
    if (table == std::string::npos) {
      missing.push_back("reuse-scratch: no operands of " + function);
      continue;
    }
    struct Row {
      size_t at;
      std::string value, name;
    };
    std::vector<Row> values;
    // The first instance only: the others are the same code.
    std::sregex_iterator operand(text.begin() + table, text.end(), row);
    for (size_t i = 0; i < count && operand != last; ++i, ++operand)
      if ((*operand)[1] == "inWorkspace")
        values.push_back({table + size_t(operand->position(2)), (*operand)[2],
                          (*operand)[3]});
    for (size_t i = 0; i + 1 < values.size(); ++i) {
      if (values[i].value == values[i + 1].value)
        continue;
      std::string mutated = text;
      mutated.replace(values[i].at, values[i].value.size(),
                      values[i + 1].value);
      mutants.push_back({"reuse-scratch " + function + " " + values[i].name +
                             " over " + values[i + 1].name,
                         mutated,
                         {}});
    }
  }
}

std::vector<Mutant> makeMutants(const std::string &text, int capability,
                                std::vector<std::string> &missing) {
  using Part = Collector::Part;
  Collector c(text);
  c.barriers();
  c.counters();
  // Orders and scopes, in the idioms' own instructions.
  c.opcodes("relaxed-for-release", "release", "relaxed");
  c.opcodes("relaxed-for-acquire", "acquire", "relaxed");
  c.opcodes("cta-for-gpu", "gpu", "cta");
  c.each("nc-for-cg", Part::Idioms, "\"ld.global.cg", "\"ld.global.nc");
  c.each("drop-syncthreads", Part::Idioms, "  __syncthreads();", "  ;");
  c.each("drop-syncwarp", Part::Idioms, "  __syncwarp();", "  ;");
  c.each("drop-proxy-fence", Part::Body, "mega::fenceAsyncProxy();", ";");
  c.each("drop-syncthreads", Part::Body, "__syncthreads();", ";");
  c.each("drop-syncwarp", Part::Body, "__syncwarp();", ";");
  // Targets and counts.
  c.twin("target-lower", "grid_barrier", "gridDim.x - 1", "gridDim.x - 2");
  c.twin("target-higher", "grid_barrier", "gridDim.x - 1", "gridDim.x");
  c.twin("two-owners", "grid_barrier", "blockIdx.x == 0", "blockIdx.x <= 1");
  c.each("two-owners", Part::Body, "if (blockIdx.x == 0)",
         "if (blockIdx.x <= 1)");
  c.twin("arrive-twice", "grid_barrier", ": 1u", ": 2u");
  if (capability >= 90) {
    c.each("drop-mbarrier-fence", Part::Idioms, "fence.mbarrier_init.release",
           "fence.acq_rel");
    c.twin("arrivals-too-many", "unit_ring", "slot, 1)", "slot, 2)");
    c.twin("bytes-lower", "unit_ring", "(barrier, bytes);",
           "(barrier, bytes - 16);");
    c.twin("bytes-higher", "unit_ring", "(barrier, bytes);",
           "(barrier, bytes + 16);");
    c.twin("parity-inverted", "unit_ring", "taken / kSlots % 2",
           "1 - taken / kSlots % 2");
    c.twin("parity-stuck", "unit_ring", "taken / kSlots % 2", "0");
    c.twin("no-wait", "unit_ring",
           "mega_sim_api->mbarrierWait(barriers + slot, taken / kSlots % 2);",
           ";");
  } else {
    c.twin("no-wait", "unit_ring",
           "mega_sim_api->waitGroup(younger < 3 ? younger : 3);", ";");
    c.twin("wait-for-older", "unit_ring", "issued - taken - 1;",
           "issued - taken;");
  }
  // A ring of one slot has no other.
  if (text.find("mega::UnitRing<1, ") == std::string::npos)
    c.twin("slot-of-next", "unit_ring", "base + issued % kSlots * kSlotBytes",
           "base + (issued + 1) % kSlots * kSlotBytes");
  c.tile("ring-overfull", "quant_gemv", "ring.pending() < Ring::kDepth",
         "ring.pending() <= Ring::kDepth");
  c.tile("no-release", "quant_gemv", "ring.release();", ";");
  c.tile("release-early", "quant_gemv", "if (left == 1) {",
         "if (left == kUnits) {");
  // Who does what.
  const std::string end = "int(divide(total * (part + 1), parts))";
  const std::string rowsEnd = "begin + size + (chunk < rest ? 1 : 0)";
  const std::string rowsBegin = "chunk * size + min(chunk, rest)";
  for (const char *change : {" + 1", " - 1"}) {
    c.tile("share-end", "share", end, end + change);
    c.tile("share-end", "latent_attention", rowsEnd, rowsEnd + change);
  }
  c.tile("share-begin", "share", "int(divide(total * part, parts))",
         "int(divide(total * part, parts)) + 1");
  c.tile("share-begin", "latent_attention", rowsBegin, rowsBegin + " + 1");
  // Copies by the thread itself.
  c.tile("no-wait", "latent_attention", "CpAsync::wait<1>();", ";");
  c.tile("wait-for-older", "latent_attention", "CpAsync::wait<1>();",
         "CpAsync::wait<2>();");
  c.tile("owner", "share", "(index + 1) * parts - 1) / total",
         "(index + 1) * parts) / total");
  c.tile("owner-count", "share", "end - begin + 1}", "end - begin}");
  c.each("own-nobody", Part::Body, "blockIdx.x, gridDim.x);",
         "blockIdx.x + 1, gridDim.x);");
  // Rows of plain weights.
  c.each("own-nobody", Part::Body, "blockIdx.x, gridDim.x),\n",
         "blockIdx.x + 1, gridDim.x),\n");
  c.each("one-thread-less", Part::Body, "if (threadIdx.x < 32)",
         "if (threadIdx.x < 31)");
  c.each("other-thread", Part::Body, "if (threadIdx.x % 32 == 0)",
         "if (threadIdx.x % 32 <= 1)");
  // Shared memory changes hands too early.
  c.each("shared-overlap", Part::Body, "reinterpret_cast<float *>(shared + ",
         "reinterpret_cast<float *>(shared + 0 * ");
  c.workspaceReuse();
  missing = c.missing;
  return c.mutants;
}
