// SPDX-License-Identifier: Apache-2.0
//
// Runs an emitted kernel on the CPU: the text itself, compiled by the host's
// C++ compiler against twins of the device idioms, with CTAs and threads under
// a seeded scheduler, and every access checked. docs/simulator.md says what is
// modelled and what is not.

#ifndef MEGA_RUNTIME_SIMULATOR_H
#define MEGA_RUNTIME_SIMULATOR_H

#include "mega/runtime/Manifest.h"
#include "mega/runtime/Status.h"
#include "mega/runtime/TensorMap.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace megalith {

/// Something wrong with a kernel.
struct SimReport {
  enum class Kind {
    Race,            ///< two accesses without an order
    ConstantWritten, ///< ld.global.nc of what the launch writes
    Poison,          ///< use of a value that nobody wrote
    OutOfBounds,     ///< outside of every buffer, or a write to a constant
    Deadlock,        ///< nobody can go on
    Livelock,        ///< waiting without end
    Divergence,      ///< a warp instruction that lanes do not reach together
    StackOverflow,   ///< a thread's locals need more than the simulator has
  };
  Kind kind;
  /// Both accesses, their places, and the order that is missing.
  std::string text;
};

/// "race", "deadlock", ...
const char *simReportName(SimReport::Kind kind);

/// In which order the scheduler lets CTAs, warps and lanes run.
enum class SimPolicy {
  RoundRobin, ///< by index
  Reverse,    ///< by index, from the end
  Random,     ///< by the seed, changing CTA and warp often
  Starve,     ///< one CTA (by the seed) runs only when no other can
  LastArriver ///< who arrives last is overtaken, and comes last again
};

/// Every policy, with the name that options use.
std::vector<std::pair<std::string, SimPolicy>> simPolicies();

/// How kernel text is compiled.
struct SimCompileOptions {
  /// Instruments every access. Without, only what is blocked for good and what
  /// poison does to results is noticed.
  bool races = true;
  /// Compute capability, 90 for sm_90, which decides the idioms' forms; 0 for
  /// the greatest of the bundle's targets, 90 for text alone.
  int capability = 0;
  /// The C++ compiler; empty for $MEGALITH_SIM_CXX, else g++.
  std::string compiler;
  /// Folder of compiled kernels, by content; empty for $MEGALITH_SIM_CACHE,
  /// else a folder of this user below the system's temporary one.
  std::string cacheDirectory;
  /// Files of runtime/sim to use instead of the built-in ones, by relative
  /// path: for tests that weaken a twin.
  std::map<std::string, std::string> replacements;
};

/// A kernel compiled for the host. Cheap to share; one launch at a time.
class SimKernel {
public:
  /// Compiles emitted CUDA text, unchanged. BAD_FORMAT with the compiler's
  /// first errors; IO_ERROR.
  static Result<std::shared_ptr<SimKernel>>
  compile(const std::string &text, const SimCompileOptions &options = {});
  ~SimKernel();

  /// The __global__ function's name.
  const std::string &entry() const;
  /// Whether accesses are instrumented.
  bool races() const;

  struct Impl;
  explicit SimKernel(std::unique_ptr<Impl> impl);
  /// For the engine.
  std::unique_ptr<Impl> impl;
};

/// Choices of one launch. Same choices, same run, bit for bit.
struct SimOptions {
  uint64_t seed = 0;
  SimPolicy policy = SimPolicy::RoundRobin;
  /// Ends the launch once there are as many; a deadlock always ends it.
  size_t maxReports = 8;
};

/// A buffer of global memory.
struct SimBuffer {
  enum class Kind {
    Constant,  ///< the kernel never writes it
    State,     ///< lives from launch to launch
    Output,    ///< has no value when a launch starts
    Workspace, ///< the same, but variables of atomics live on, first zero
  };
  std::string name;
  Kind kind;
  uint64_t bytes;
};

/// The launch's shape.
struct SimShape {
  int ctas = 1;
  int threads = 32; ///< a multiple of 32, at most 1024
  int sharedBytes = 0;
};

/// What happened in a launch.
struct SimRun {
  std::vector<SimReport> reports;
  /// Switches between threads.
  uint64_t switches = 0;
  /// Accesses that were checked; 0 without instrumentation.
  uint64_t accesses = 0;
};

/// Buffers, and launches of one kernel on them. Never throws.
class SimMachine {
public:
  static Result<std::unique_ptr<SimMachine>>
  create(std::shared_ptr<SimKernel> kernel, const SimShape &shape,
         std::vector<SimBuffer> buffers);
  ~SimMachine();

  /// First byte of a buffer; 256-byte aligned, zeroed by create.
  uint8_t *data(size_t buffer);

  /// How many bytes of a State have a value; all, unless this was called.
  void setValid(size_t buffer, uint64_t bytes);

  /// One launch with the kernel's one parameter. Launches are one history.
  Result<SimRun> launch(const void *parameter, uint64_t bytes,
                        const SimOptions &options);

private:
  struct Impl;
  explicit SimMachine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl;
};

/// A block on the simulator: Instance's operations with the same meaning.
class SimInstance {
public:
  /// `ctas` 0 means 16, or the manifest's max_ctas if that is less.
  static Result<std::unique_ptr<SimInstance>>
  create(std::shared_ptr<const Bundle> bundle, int64_t capacityRows, int ctas,
         const SimCompileOptions &compile = {});
  /// The same for a kernel that is not from the bundle's folder.
  static Result<std::unique_ptr<SimInstance>>
  create(std::shared_ptr<const Bundle> bundle,
         std::shared_ptr<SimKernel> kernel, int64_t capacityRows, int ctas);
  ~SimInstance();

  const Bundle &bundle() const;
  int grid() const;
  Status bindTensors(const TensorMap &map, const std::string &prefix = "");
  Status weightsReady() const;
  Status writeWeights(uint64_t offset, const void *data, uint64_t bytes);
  Status setState(const std::string &name, const void *data, uint64_t bytes);
  Status getState(const std::string &name, void *data, uint64_t bytes);
  int64_t capacity() const;
  Status setPosition(int64_t position);
  int64_t position() const;

  /// Choices of the launches to come.
  void setOptions(const SimOptions &options);

  /// One launch. Fails with the reports if there are any; `lastRun` has them.
  Status stepHost(const void *input, void *output);
  const SimRun &lastRun() const;

  Status readProbe(const std::string &name, void *data, uint64_t bytes);
  Status reset();

private:
  struct Impl;
  explicit SimInstance(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl;
};

} // namespace megalith

#endif
