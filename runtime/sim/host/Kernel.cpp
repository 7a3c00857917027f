// SPDX-License-Identifier: Apache-2.0
/// \file
/// Compiles kernel text with the host's compiler and loads it.
///
/// g++ at -O1 compiles an instrumented kernel several times faster than
/// clang++, whose cost lies in inlining what the sanitizer pass then expands
/// (docs/simulator.md has the numbers).

#include "Kernel.h"

#include "Error.h"
#include "File.h"
#include "Prelude.h"
#include "Process.h"

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>

using namespace megalith;
using namespace megalith::sim;

namespace fs = std::filesystem;

static std::string environment(const char *name, const char *otherwise) {
  const char *value = std::getenv(name);
  return value && *value ? value : otherwise;
}

/// The folder of compiled kernels. What lies there is loaded as code, so it
/// must be this user's alone.
static std::string cacheDirectory(const SimCompileOptions &options) {
  std::string path = options.cacheDirectory;
  if (path.empty())
    path = environment("MEGALITH_SIM_CACHE", "");
  if (path.empty())
    path =
        (fs::temp_directory_path() / fmt::format("megalith-sim-{}", ::getuid()))
            .string();
  std::error_code error;
  fs::create_directories(fs::path(path).parent_path(), error);
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    fail(MEGALITH_IO_ERROR, "cannot create {}", quote(path));
  struct stat info;
  if (::stat(path.c_str(), &info) != 0 || info.st_uid != ::getuid())
    fail(MEGALITH_IO_ERROR, "{} belongs to another user", quote(path));
  return path;
}

/// 128-bit FNV-1a, as hexadecimal digits.
static std::string contentHash(const std::string &text) {
  constexpr unsigned __int128 prime =
      (static_cast<unsigned __int128>(1) << 88) + 0x13b;
  unsigned __int128 hash =
      (static_cast<unsigned __int128>(0x6c62272e07bb0142) << 64) +
      0x62b821756295c58d;
  for (unsigned char c : text)
    hash = (hash ^ c) * prime;
  return fmt::format("{:016x}{:016x}", uint64_t(hash >> 64), uint64_t(hash));
}

/// The built-in files with the caller's replacements.
static std::map<std::string, std::string>
filesFor(const SimCompileOptions &options) {
  std::map<std::string, std::string> files = options.replacements;
  for (auto [name, text] : preludeFiles())
    files.emplace(name, text);
  return files;
}

/// The translation unit that includes kernel.cu, unchanged, after its twins.
static std::string wrapperFor(const KernelText &text,
                              const std::map<std::string, std::string> &files) {
  std::string wrapper = "#include \"prelude/cuda.h\"\n"
                        "#include \"prelude/ptx.h\"\n"
                        "namespace mega {\nnamespace sim {\n"
                        "constexpr Instruction kTextInstructions[] = {\n";
  for (const TextInstruction &instruction : text.instructions)
    wrapper += fmt::format("  {{\"{}\", {}, \"{}\"}},\n", instruction.function,
                           instruction.index, instruction.opcode);
  wrapper += "  {nullptr, 0, nullptr}};\n}\n}\n";
  for (const std::string &idiom : text.idioms) {
    std::string twin = "idioms/" + idiom.substr(0, idiom.find('.')) + ".h";
    if (files.count(twin) == 0)
      fail(MEGALITH_BAD_FORMAT,
           "the text's idioms {} have no host twin, expected {}", quote(idiom),
           twin);
    wrapper += "#include \"" + twin + "\"\n";
  }
  wrapper += fmt::format(
      "#define MEGA_HOST_IDIOMS\n"
      "#include \"kernel.cu\"\n"
      "#include \"prelude/exports.h\"\n"
      "MEGA_SIM_EXPORT void mega_sim_entry(const void *parameter) {{\n"
      "  {}(*static_cast<const {} *>(parameter));\n}}\n"
      "MEGA_SIM_EXPORT const unsigned long long mega_sim_parameter_bytes =\n"
      "    sizeof({});\n",
      text.entry, text.parameter, text.parameter);
  return wrapper;
}

static void write(const fs::path &path, std::string_view text) {
  fs::create_directories(path.parent_path());
  FileWriter file(path.string());
  file.write(text.data(), text.size());
  file.commit();
}

/// The first lines of a compiler's output, each with less context.
static std::string firstErrors(const std::string &output) {
  std::string errors;
  size_t begin = 0;
  for (int count = 0; begin < output.size() && count < 3;) {
    size_t end = std::min(output.find('\n', begin), output.size());
    std::string line = output.substr(begin, end - begin);
    if (line.find("error") != std::string::npos) {
      errors += "\n  " + line;
      ++count;
    }
    begin = end + 1;
  }
  return errors.empty() ? "\n  " + output.substr(0, 400) : errors;
}

/// Compiles into `folder`.
static void compileInto(const fs::path &folder,
                        const std::vector<std::string> &compiler,
                        const std::map<std::string, std::string> &files,
                        const std::string &wrapper, const std::string &text) {
  for (const auto &[name, content] : files)
    write(folder / name, content);
  write(folder / "kernel.cu", text);
  write(folder / "kernel.cpp", wrapper);
  std::vector<std::string> arguments = compiler;
  for (const char *argument : {"-c", "-o"})
    arguments.push_back(argument);
  arguments.push_back((folder / "kernel.o").string());
  arguments.push_back((folder / "kernel.cpp").string());
  std::string output;
  if (int status = runProcess(arguments, output))
    fail(MEGALITH_BAD_FORMAT,
         "{} cannot compile the kernel for the host (status {}):{}",
         compiler.front(), status, firstErrors(output));
  // Linked without -fsanitize: the prelude is the sanitizer's runtime.
  output.clear();
  if (int status = runProcess({compiler.front(), "-shared", "-o",
                               (folder / "kernel.so").string(),
                               (folder / "kernel.o").string()},
                              output))
    fail(MEGALITH_BAD_FORMAT, "{} cannot link the kernel (status {}):{}",
         compiler.front(), status, firstErrors(output));
  std::error_code ignored;
  fs::remove(folder / "kernel.o", ignored);
}

SimKernel::Impl::Impl(const std::string &source,
                      const SimCompileOptions &options)
    : text(readKernelText(source)) {
  std::vector<std::string> compiler = {
      options.compiler.empty() ? environment("MEGALITH_SIM_CXX", "g++")
                               : options.compiler,
      "-std=c++17", "-g1", "-gdwarf-4", "-fPIC", "-w", "-fno-exceptions",
      "-fvisibility=hidden",
      // The text casts between element types, as CUDA allows.
      "-fno-strict-aliasing", "-ffp-contract=off", "-fno-math-errno",
      // Return addresses tell places apart.
      "-fno-optimize-sibling-calls",
      fmt::format("-D__CUDA_ARCH__={}",
                  10 * (options.capability ? options.capability : 90))};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    for (const char *flag : {"-mavx2", "-mfma"})
      compiler.push_back(flag);
  if (options.races)
    for (const char *flag : {"-O1", "-fsanitize=thread", "-DMEGA_SIM_RACES"})
      compiler.push_back(flag);
  else
    compiler.push_back("-O2");

  const std::map<std::string, std::string> files = filesFor(options);
  std::string wrapper = wrapperFor(text, files);
  std::string content = wrapper + source;
  for (const auto &[name, file] : files)
    content.append(name).append(file);
  for (const std::string &argument : compiler)
    content += "\n" + argument;
  fs::path cache = cacheDirectory(options);
  fs::path folder = cache / contentHash(content);
  library = (folder / "kernel.so").string();
  auto build = [&] {
    fs::path building =
        cache / fmt::format("{}.{}", folder.filename().string(), ::getpid());
    fs::create_directories(building);
    try {
      compileInto(building, compiler, files, wrapper, source);
    } catch (...) {
      std::error_code ignored;
      fs::remove_all(building, ignored);
      throw;
    }
    std::error_code taken;
    fs::rename(building, folder, taken);
    if (taken) // by another process, with the same content
      fs::remove_all(building, taken);
  };
  const bool kept = fs::exists(library);
  if (!kept)
    build();
  handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle && kept) {
    // Torn, by a full disk or a machine that stopped.
    fs::remove_all(folder);
    build();
    handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  if (!handle)
    fail(MEGALITH_IO_ERROR, "cannot load {}: {}", quote(library), ::dlerror());
  auto symbol = [&](const char *name) {
    void *address = ::dlsym(handle, name);
    if (!address)
      fail(MEGALITH_INTERNAL, "{} has no symbol {}", quote(library), name);
    return address;
  };
  *static_cast<const mega::sim::Api **>(symbol("mega_sim_api")) = &engineApi();
  void *entry = symbol("mega_sim_entry");
  program.entry = reinterpret_cast<void (*)(const void *)>(entry);
  program.registers = static_cast<Registers *>(symbol("mega_sim_registers"));
  program.races = options.races;
  for (const std::vector<std::string> &stages : this->text.phases)
    program.stages.firstStages.push_back(program.stages.firstStages.back() +
                                         uint32_t(stages.size()));
  parameterBytes = *static_cast<const unsigned long long *>(
      symbol("mega_sim_parameter_bytes"));
  Dl_info info;
  ::dladdr(entry, &info);
  program.codeBase = reinterpret_cast<uintptr_t>(info.dli_fbase);
}

SimKernel::Impl::~Impl() {
  if (handle)
    ::dlclose(handle);
}

SimKernel::SimKernel(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
SimKernel::~SimKernel() = default;

Result<std::shared_ptr<SimKernel>>
SimKernel::compile(const std::string &text, const SimCompileOptions &options) {
  return guardResult<std::shared_ptr<SimKernel>>([&] {
    return std::make_shared<SimKernel>(std::make_unique<Impl>(text, options));
  });
}

const std::string &SimKernel::entry() const { return impl->text.entry; }
bool SimKernel::races() const { return impl->program.races; }
