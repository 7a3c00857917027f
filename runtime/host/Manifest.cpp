// SPDX-License-Identifier: Apache-2.0

#include "mega/runtime/Manifest.h"

#include "Error.h"
#include "File.h"
#include "Json.h"
#include "Sha256.h"
#include "mega/runtime/Repack.h"

#include "mega/abi/Kernel.h"

#include <algorithm>
#include <map>
#include <set>

using namespace megalith;

namespace {

constexpr uint64_t maxManifestBytes = 32ull << 20;
/// Keeps sums of two sizes or offsets inside int64_t.
constexpr int64_t maxBytes = int64_t(1) << 48;
/// CUDA passes at most 4 KiB of kernel parameters on every driver.
constexpr size_t maxStates = (4096 - sizeof(mega_kernel_header)) / 8;

DType parseDType(const JsonField &field) {
  std::optional<DType> dtype = parseManifestDType(field.text());
  if (!dtype)
    field.failHere(fmt::format("expected u8, i32, bf16 or f32, found {}",
                               quote(field.text())));
  return *dtype;
}

/// Dimensions, all positive; the first may be -1 if `allowCache`.
std::vector<int64_t> parseShape(const JsonField &field, bool allowCache) {
  size_t rank = field.size();
  if (rank > MEGALITH_MAX_RANK)
    field.failHere(
        fmt::format("rank {} is above {}", rank, int(MEGALITH_MAX_RANK)));
  std::vector<int64_t> shape;
  for (size_t i = 0; i < rank; ++i) {
    int64_t dim = field.at(i).integer(allowCache && i == 0 ? -1 : 1, maxBytes);
    if (dim == 0)
      field.failHere("dimension 0 is 0");
    shape.push_back(dim);
  }
  return shape;
}

uint64_t parseBytes(const JsonField &field, DType dtype,
                    const std::vector<int64_t> &shape) {
  std::optional<uint64_t> bytes = tensorBytes(dtype, shape);
  if (!bytes || *bytes > uint64_t(maxBytes))
    field.failHere(fmt::format("shape {} is too large", shapeText(shape)));
  return *bytes;
}

/// {"dtype", "shape"} and, if `named`, "name".
TensorDesc parseTensor(const JsonField &field, bool named) {
  TensorDesc tensor;
  if (named)
    tensor.name = field.at("name").name();
  tensor.dtype = parseDType(field.at("dtype"));
  tensor.shape = parseShape(field.at("shape"), false);
  tensor.bytes = parseBytes(field.at("shape"), tensor.dtype, tensor.shape);
  return tensor;
}

/// Throws unless tensor `index` of the weight has this dtype and shape.
void expectTensor(const JsonField &tensors, const WeightDesc &weight,
                  size_t index, DType dtype, std::vector<int64_t> shape) {
  const TensorDesc &tensor = weight.tensors[index];
  if (tensor.dtype == dtype && tensor.shape == shape)
    return;
  tensors.at(index).failHere(fmt::format(
      "expected {} of shape {}, found {} of shape {}", dtypeName(dtype),
      shapeText(shape), dtypeName(tensor.dtype), shapeText(tensor.shape)));
}

void checkQuant(const JsonField &field, const WeightDesc &weight) {
  size_t rank = weight.shape.size();
  if (rank != 2 && rank != 3)
    field.at("shape").failHere(
        fmt::format("expected rank 2 or 3 for a quant weight, found {}", rank));
  int64_t group = weight.group;
  if (group != 32 && group != 64 && group % 128 != 0)
    field.at("group").failHere(
        fmt::format("expected 32, 64 or a multiple of 128, found {}", group));
  if (weight.inputs() % group != 0)
    field.at("shape").failHere(fmt::format(
        "{} inputs are not a multiple of group {}", weight.inputs(), group));
  JsonField tensors = field.at("tensors");
  if (weight.tensors.size() != 3)
    tensors.failHere(fmt::format("expected 3 tensors for a quant weight, "
                                 "found {}",
                                 weight.tensors.size()));
  std::vector<int64_t> shape = weight.shape;
  shape[rank - 2] = weight.inputs() / 2;
  expectTensor(tensors, weight, 0, DType::U8, shape);
  shape[rank - 2] = weight.inputs() / group;
  expectTensor(tensors, weight, 1, DType::BF16, shape);
  expectTensor(tensors, weight, 2, DType::BF16, shape);
}

WeightDesc parseWeight(const JsonField &field) {
  WeightDesc weight;
  weight.name = field.at("name").name();
  weight.shape = parseShape(field.at("shape"), false);
  JsonField tensors = field.at("tensors");
  for (size_t i = 0, count = tensors.size(); i < count; ++i)
    weight.tensors.push_back(parseTensor(tensors.at(i), true));

  const std::string &kind = field.at("kind").text();
  if (kind == "quant") {
    weight.kind = WeightDesc::Kind::Quant;
    weight.group = field.at("group").integer(1, maxBytes);
    checkQuant(field, weight);
  } else if (kind == "dense") {
    if (weight.tensors.size() != 1)
      tensors.failHere(fmt::format("expected 1 tensor for a dense weight, "
                                   "found {}",
                                   weight.tensors.size()));
    expectTensor(tensors, weight, 0, weight.tensors[0].dtype, weight.shape);
  } else {
    field.at("kind").failHere(
        fmt::format("expected quant or dense, found {}", quote(kind)));
  }
  return weight;
}

PackLayout parseLayout(const JsonField &field) {
  const std::string &text = field.text();
  if (text == "raw")
    return PackLayout::Raw;
  if (text == "mma_m16k128")
    return PackLayout::MmaM16K128;
  if (text == "mma_m16k128_pair")
    return PackLayout::MmaM16K128Pair;
  field.failHere(fmt::format(
      "expected raw, mma_m16k128 or mma_m16k128_pair, found {}", quote(text)));
}

/// The bytes a region with these sources takes; throws if they do not fit the
/// layout or each other.
uint64_t regionBytes(const JsonField &sourcesField, PackLayout layout,
                     const std::vector<const WeightDesc *> &sources) {
  size_t count = sources.size();
  if (layout == PackLayout::Raw) {
    if (count != 1 || sources[0]->kind != WeightDesc::Kind::Dense)
      sourcesField.failHere("raw wants one dense weight");
    return sources[0]->tensors[0].bytes;
  }
  size_t routed = layout == PackLayout::MmaM16K128Pair ? 2 : 1;
  if (count != routed && count != 2 * routed)
    sourcesField.failHere(fmt::format("expected {} or {} sources, found {}",
                                      routed, 2 * routed, count));
  const WeightDesc &first = *sources[0];
  for (const WeightDesc *source : sources)
    if (source->kind != WeightDesc::Kind::Quant)
      sourcesField.failHere(
          fmt::format("{} is not a quant weight", quote(source->name)));
  for (const WeightDesc *source : sources)
    if (source->inputs() != first.inputs() ||
        source->outputs() != first.outputs() || source->group != first.group)
      sourcesField.failHere(fmt::format(
          "{} (shape {}, group {}) and {} (shape {}, group {}) differ",
          quote(first.name), shapeText(first.shape), first.group,
          quote(source->name), shapeText(source->shape), source->group));
  if (routed == 2)
    for (size_t i = 0; i < count; i += 2)
      if (sources[i]->shape != sources[i + 1]->shape)
        sourcesField.failHere(fmt::format("shapes {} and {} of a pair differ",
                                          shapeText(sources[i]->shape),
                                          shapeText(sources[i + 1]->shape)));
  std::optional<uint64_t> units = unitCount(layout, sources);
  uint64_t bytes = 0;
  if (!units || __builtin_mul_overflow(*units, unitBytes(first.group), &bytes))
    sourcesField.failHere("the region is too large");
  return bytes;
}

/// Offsets and sizes of something inside an allocation of `limit` bytes.
void expectInside(const JsonField &field, uint64_t offset, uint64_t bytes,
                  uint64_t alignment, uint64_t limit) {
  if (offset % alignment != 0)
    field.failHere(
        fmt::format("offset {} is not a multiple of {}", offset, alignment));
  if (offset + bytes > limit)
    field.failHere(fmt::format("bytes {}..{} are not inside the {} allocated",
                               offset, offset + bytes, limit));
}

RegionDesc parseRegion(const JsonField &field, const Manifest &manifest,
                       const std::map<std::string, size_t> &weightIndex) {
  RegionDesc region;
  region.layout = parseLayout(field.at("layout"));
  region.offset = uint64_t(field.at("offset").integer(0, maxBytes));
  region.bytes = uint64_t(field.at("bytes").integer(0, maxBytes));
  expectInside(field, region.offset, region.bytes, 16, manifest.weightBytes);

  JsonField sourcesField = field.at("sources");
  std::vector<const WeightDesc *> sources;
  for (size_t i = 0, count = sourcesField.size(); i < count; ++i) {
    const std::string &name = sourcesField.at(i).text();
    auto it = weightIndex.find(name);
    if (it == weightIndex.end())
      sourcesField.at(i).failHere(
          fmt::format("no weight is named {}", quote(name)));
    region.sources.push_back(it->second);
    sources.push_back(&manifest.weights[it->second]);
  }
  uint64_t bytes = regionBytes(sourcesField, region.layout, sources);
  if (bytes != region.bytes)
    field.at("bytes").failHere(
        fmt::format("expected {}, found {}", bytes, region.bytes));
  return region;
}

/// Throws if two regions overlap or a weight is in none.
void checkPacked(const JsonField &field, const Manifest &manifest) {
  std::vector<std::pair<uint64_t, uint64_t>> spans;
  std::vector<bool> packed(manifest.weights.size());
  for (const RegionDesc &region : manifest.packed) {
    spans.emplace_back(region.offset, region.offset + region.bytes);
    for (size_t source : region.sources)
      packed[source] = true;
  }
  std::sort(spans.begin(), spans.end());
  for (size_t i = 1; i < spans.size(); ++i)
    if (spans[i].first < spans[i - 1].second)
      field.failHere(fmt::format("regions {}..{} and {}..{} overlap",
                                 spans[i - 1].first, spans[i - 1].second,
                                 spans[i].first, spans[i].second));
  for (size_t i = 0; i < packed.size(); ++i)
    if (!packed[i])
      field.failHere(fmt::format("no region holds weight {}",
                                 quote(manifest.weights[i].name)));
}

StateDesc parseState(const JsonField &field) {
  StateDesc state;
  state.name = field.at("name").name();
  state.dtype = parseDType(field.at("dtype"));
  state.shape = parseShape(field.at("shape"), true);
  std::vector<int64_t> unit = state.shape;
  if (state.isCache())
    unit[0] = 1;
  state.unitBytes = parseBytes(field.at("shape"), state.dtype, unit);
  return state;
}

/// Throws if the name was seen before in this list.
void expectUnique(const JsonField &field, std::set<std::string> &seen,
                  const std::string &name) {
  if (!seen.insert(name).second)
    field.failHere(fmt::format("name {} appears twice", quote(name)));
}

/// A file's name, which must not lead out of the bundle.
std::string parseFile(const JsonField &field) {
  const std::string &file = field.name();
  if (file.find_first_of("/\\") != std::string::npos || file == "." ||
      file == "..")
    field.failHere(fmt::format(
        "expected a file name without a folder, found {}", quote(file)));
  return file;
}

/// `prefix` ("sm_" or "compute_") with NN or NNa, and a file.
TargetDesc parseTarget(const JsonField &field, const std::string &prefix) {
  TargetDesc target;
  JsonField archField = field.at("arch");
  target.arch = archField.text();
  std::string_view digits = target.arch;
  bool known = digits.substr(0, prefix.size()) == prefix;
  digits.remove_prefix(std::min(prefix.size(), digits.size()));
  target.exact = !digits.empty() && digits.back() == 'a';
  if (target.exact)
    digits.remove_suffix(1);
  known = known && digits.size() >= 2 && digits.size() <= 3;
  for (char c : digits) {
    known = known && c >= '0' && c <= '9';
    target.capability = known ? target.capability * 10 + (c - '0') : 0;
  }
  if (!known)
    archField.failHere(fmt::format("expected {0}NN or {0}NNa, found {1}",
                                   prefix, quote(target.arch)));
  target.file = parseFile(field.at("file"));
  return target;
}

/// An array of targets whose arches differ.
std::vector<TargetDesc> parseTargets(const JsonField &field,
                                     const std::string &prefix) {
  std::vector<TargetDesc> targets;
  std::set<std::string> arches;
  for (size_t i = 0, count = field.size(); i < count; ++i) {
    targets.push_back(parseTarget(field.at(i), prefix));
    expectUnique(field.at(i), arches, targets.back().arch);
  }
  return targets;
}

/// File names with their SHA-256.
std::map<std::string, std::string> parseDigests(const JsonField &field) {
  std::map<std::string, std::string> digests;
  for (const std::string &name : field.keys()) {
    JsonField value = field.at(name.c_str());
    const std::string &digest = value.text();
    if (digest.size() != 64 ||
        digest.find_first_not_of("0123456789abcdef") != std::string::npos)
      value.failHere(
          fmt::format("expected 64 lower-case hexadecimal digits, found {}",
                      quote(digest)));
    digests[name] = digest;
  }
  return digests;
}

std::vector<PersistentDesc> parsePersistent(const JsonField &field,
                                            uint64_t workspaceBytes) {
  std::vector<PersistentDesc> spans;
  for (size_t i = 0, count = field.size(); i < count; ++i) {
    PersistentDesc span;
    span.offset = uint64_t(field.at(i).at("offset").integer(0, maxBytes));
    span.bytes = uint64_t(field.at(i).at("bytes").integer(1, maxBytes));
    span.kind = field.at(i).at("kind").text();
    expectInside(field.at(i), span.offset, span.bytes, 4, workspaceBytes);
    if (span.bytes < 4)
      field.at(i).at("bytes").failHere(
          fmt::format("expected at least 4, found {}", span.bytes));
    if (span.kind == "counters") {
      span.name = field.at(i).at("name").text();
      span.count = uint64_t(
          field.at(i).at("count").integer(1, int64_t(span.bytes / 4)));
    }
    spans.push_back(std::move(span));
  }
  return spans;
}

/// What the manifest tells of the schedule.
void parseSchedule(const JsonField &field, Manifest &manifest) {
  if (std::optional<JsonField> list = field.find("phase_list"))
    for (size_t i = 0, count = list->size(); i < count; ++i) {
      JsonField stages = list->at(i).at("stages");
      PhaseDesc phase;
      for (size_t j = 0, names = stages.size(); j < names; ++j)
        phase.stages.push_back(stages.at(j).text());
      manifest.phases.push_back(std::move(phase));
    }
  if (std::optional<JsonField> bytes = field.find("bytes_per_step"))
    manifest.traffic = TrafficDesc{
        uint64_t(bytes->at("weights").integer(0, maxBytes)),
        uint64_t(bytes->at("state").integer(0, maxBytes)),
        uint64_t(bytes->at("cache_per_token").integer(0, maxBytes))};
}

void parseLaunch(const JsonField &field, Manifest &manifest) {
  JsonField threads = field.at("threads");
  manifest.threads = int(threads.integer(32, 1024));
  if (manifest.threads % 32 != 0)
    threads.failHere(
        fmt::format("expected whole warps of 32, found {}", manifest.threads));
  manifest.sharedBytes = int(field.at("shared_bytes").integer(0, 1 << 24));
  manifest.maxCtas = int(field.at("max_ctas").integer(1, 1 << 16));
}

void parseVersion(const JsonField &root, const std::string &label) {
  const std::string &format = root.at("format").text();
  if (format != "megalith-bundle")
    root.at("format").failHere(
        fmt::format("expected 'megalith-bundle', found {}", quote(format)));
  int64_t version = root.at("version").integer(1, INT64_MAX);
  if (version > MEGA_ABI_VERSION)
    fail(MEGALITH_UNSUPPORTED_VERSION,
         "{}: bundle has format version {}, this runtime reads up to {}", label,
         version, MEGA_ABI_VERSION);
}

Manifest parse(const std::string &text, const std::string &label) {
  nlohmann::json document = parseJson(text, label);
  JsonField root(document, label + ": ");
  parseVersion(root, label);

  Manifest manifest;
  manifest.block = root.at("block").name();
  manifest.kernel = root.at("kernel").name();
  manifest.input = parseTensor(root.at("input"), false);
  manifest.output = parseTensor(root.at("output"), false);

  JsonField weights = root.at("weights");
  std::map<std::string, size_t> weightIndex;
  std::set<std::string> tensorNames;
  for (size_t i = 0, count = weights.size(); i < count; ++i) {
    WeightDesc weight = parseWeight(weights.at(i));
    if (!weightIndex.emplace(weight.name, i).second)
      weights.at(i).failHere(
          fmt::format("name {} appears twice", quote(weight.name)));
    for (const TensorDesc &tensor : weight.tensors)
      expectUnique(weights.at(i), tensorNames, tensor.name);
    manifest.weights.push_back(std::move(weight));
  }

  manifest.weightBytes = uint64_t(root.at("weight_bytes").integer(0, maxBytes));
  JsonField packed = root.at("packed");
  for (size_t i = 0, count = packed.size(); i < count; ++i)
    manifest.packed.push_back(parseRegion(packed.at(i), manifest, weightIndex));
  checkPacked(packed, manifest);

  JsonField states = root.at("states");
  std::set<std::string> stateNames;
  if (states.size() > maxStates)
    states.failHere(fmt::format("{} states are above the limit of {}",
                                states.size(), maxStates));
  for (size_t i = 0, count = states.size(); i < count; ++i) {
    manifest.states.push_back(parseState(states.at(i)));
    expectUnique(states.at(i), stateNames, manifest.states.back().name);
  }

  manifest.inPlace = root.at("in_place").boolean();
  manifest.workspaceBytes =
      uint64_t(root.at("workspace").at("bytes").integer(0, maxBytes));
  JsonField probes = root.at("probes");
  std::set<std::string> probeNames;
  for (size_t i = 0, count = probes.size(); i < count; ++i) {
    ProbeDesc probe;
    probe.tensor = parseTensor(probes.at(i), true);
    probe.offset = uint64_t(probes.at(i).at("offset").integer(0, maxBytes));
    expectInside(probes.at(i), probe.offset, probe.tensor.bytes,
                 dtypeBits(probe.tensor.dtype) / 8, manifest.workspaceBytes);
    expectUnique(probes.at(i), probeNames, probe.tensor.name);
    manifest.probes.push_back(std::move(probe));
  }

  parseLaunch(root.at("launch"), manifest);
  manifest.targets = parseTargets(root.at("targets"), "sm_");
  if (std::optional<JsonField> ptx = root.find("ptx"))
    manifest.ptx = parseTargets(*ptx, "compute_");
  if (std::optional<JsonField> files = root.find("files"))
    manifest.digests = parseDigests(*files);
  if (std::optional<JsonField> spans = root.at("workspace").find("persistent"))
    manifest.persistent = parsePersistent(*spans, manifest.workspaceBytes);
  if (std::optional<JsonField> schedule = root.find("schedule"))
    parseSchedule(*schedule, manifest);
  return manifest;
}

} // namespace

bool Manifest::hasCaches() const {
  return std::any_of(states.begin(), states.end(),
                     [](const StateDesc &state) { return state.isCache(); });
}

std::optional<size_t> Manifest::findState(const std::string &name) const {
  for (size_t i = 0; i < states.size(); ++i)
    if (states[i].name == name)
      return i;
  return std::nullopt;
}

Result<Manifest> megalith::parseManifest(const std::string &text,
                                         const std::string &label) {
  return guardResult<Manifest>([&] { return parse(text, label); });
}

Result<std::string> megalith::readBundleFile(const Bundle &bundle,
                                             const std::string &name,
                                             uint64_t limit) {
  return guardResult<std::string>([&] {
    std::string path = bundle.directory + "/" + name;
    std::string bytes = readFile(path, limit, Links::Refuse);
    auto wanted = bundle.manifest.digests.find(name);
    if (wanted != bundle.manifest.digests.end()) {
      std::string found = sha256(bytes);
      if (found != wanted->second)
        fail(MEGALITH_BAD_FORMAT, "{}: sha-256 is {}, expected {}", quote(path),
             found, wanted->second);
    }
    return bytes;
  });
}

Result<std::shared_ptr<const Bundle>>
megalith::loadBundle(const std::string &directory) {
  return guardResult<std::shared_ptr<const Bundle>>([&] {
    auto bundle = std::make_shared<Bundle>();
    bundle->directory = directory;
    std::string path = directory + "/manifest.json";
    bundle->text = readFile(path, maxManifestBytes, Links::Refuse);
    bundle->manifest = parse(bundle->text, path);
    return bundle;
  });
}
