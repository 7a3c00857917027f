// SPDX-License-Identifier: Apache-2.0
/// \file
/// Where numbers come from, and on what they are used.

#include "Flags.h"

#include "llvm/Support/FileSystem.h"

using namespace llvm;
using namespace mega::run;

Expected<Source> mega::run::parseSource(StringRef flag, StringRef text) {
  Source source;
  source.balanced = flag == "weights" && text.consume_front("balanced:");
  if (source.balanced || text.consume_front("random:")) {
    uint64_t seed;
    if (text.getAsInteger(10, seed))
      return usage("--{0} has seed '{1}', expected a non-negative integer",
                   flag, text);
    source.seed = seed;
    return source;
  }
  if (text.empty())
    return usage("--{0} is empty, expected a file or random:SEED", flag);
  // "random" alone is a seed that was forgotten.
  if (!sys::fs::exists(text))
    return usage("--{0} is '{1}', which does not exist, expected a file{2}",
                 flag, text,
                 flag == "weights" ? ", random:SEED or balanced:SEED"
                                   : " or random:SEED");
  source.path = text.str();
  return source;
}

CommonFlags::CommonFlags(cl::OptionCategory &category, const char *weights)
    : weightsText((Twine("Weights (default ") + weights + ")").str()),
      weights("weights", cl::desc(weightsText),
              cl::value_desc("file | random:SEED | balanced:SEED"),
              cl::init(weights), cl::cat(category)),
      weightsPrefix("weights-prefix",
                    cl::desc("Use only names with this prefix, less it"),
                    cl::value_desc("text"), cl::cat(category)),
      extraTensors("allow-extra-tensors",
                   cl::desc("Accept weight files with tensors the block does "
                            "not name"),
                   cl::cat(category)),
      threads("host-threads", cl::desc("Host threads (default: all cores)"),
              cl::value_desc("n"), cl::cat(category)),
      device("device", cl::desc("CUDA device (default 0)"), cl::value_desc("n"),
             cl::cat(category)) {}

Error CommonFlags::place(Options &options) const {
  if (threads.getNumOccurrences() && threads == 0)
    return usage("--host-threads has value 0, expected 1 or more");
  if (device < 0)
    return usage("--device has value {0}, expected 0 or more", device);
  Expected<Source> source = parseSource("weights", weights);
  if (!source)
    return source.takeError();
  options.weights = *source;
  options.weightsPrefix = weightsPrefix;
  options.extraTensors = extraTensors;
  options.threads = threads;
  options.device = device;
  return Error::success();
}
