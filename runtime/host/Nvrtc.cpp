// SPDX-License-Identifier: Apache-2.0
//
// NVRTC through dlopen: a machine without it can load and run cubins.

#include "mega/runtime/Nvrtc.h"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <mutex>

namespace megalith {
namespace {

using Program = struct NvrtcOpaqueProgram *;

/// The functions this file calls, with NVRTC's own signatures (nvrtc.h).
struct Nvrtc {
  int (*create)(Program *, const char *, const char *, int, const char *const *,
                const char *const *);
  int (*destroy)(Program *);
  int (*compile)(Program, int, const char *const *);
  int (*logSize)(Program, size_t *);
  int (*log)(Program, char *);
  int (*cubinSize)(Program, size_t *);
  int (*cubin)(Program, char *);
  int (*ptxSize)(Program, size_t *);
  int (*ptx)(Program, char *);
  const char *(*errorString)(int);
};

/// Where NVRTC may be, most wanted first.
std::vector<std::string> candidates(const std::string &library) {
  std::vector<std::string> paths;
  if (!library.empty())
    return {library};
  if (const char *path = std::getenv("MEGALITH_NVRTC"); path && *path)
    return {path};
  paths.insert(paths.end(), {"libnvrtc.so.13", "libnvrtc.so"});
  const char *home = std::getenv("CUDA_HOME");
  for (std::string base : {home ? home : "", "/usr/local/cuda"})
    if (!base.empty())
      paths.push_back(base + "/lib64/libnvrtc.so");
  return paths;
}

Result<Nvrtc> openNvrtc(const std::string &library) {
  std::string tried;
  void *handle = nullptr;
  for (const std::string &path : candidates(library)) {
    handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle)
      break;
    tried += (tried.empty() ? "" : ", ") + path;
  }
  if (!handle)
    return Status(MEGALITH_NOT_FOUND,
                  fmt::format("nvrtc could not be opened (tried {}); install "
                              "the CUDA toolkit or the PyPI package "
                              "nvidia-cuda-nvrtc, or set MEGALITH_NVRTC",
                              tried));
  Nvrtc api;
  std::string missing;
  auto bind = [&](auto &function, const char *name) {
    void *symbol = dlsym(handle, name);
    if (!symbol)
      missing = name;
    std::memcpy(&function, &symbol, sizeof symbol);
  };
  bind(api.create, "nvrtcCreateProgram");
  bind(api.destroy, "nvrtcDestroyProgram");
  bind(api.compile, "nvrtcCompileProgram");
  bind(api.logSize, "nvrtcGetProgramLogSize");
  bind(api.log, "nvrtcGetProgramLog");
  bind(api.cubinSize, "nvrtcGetCUBINSize");
  bind(api.cubin, "nvrtcGetCUBIN");
  bind(api.ptxSize, "nvrtcGetPTXSize");
  bind(api.ptx, "nvrtcGetPTX");
  bind(api.errorString, "nvrtcGetErrorString");
  if (!missing.empty())
    return Status(MEGALITH_NOT_FOUND,
                  fmt::format("nvrtc has no function {}, expected NVRTC 11.3 "
                              "or newer",
                              missing));
  return api;
}

/// Reads a sized text or image from the program.
template <typename Size, typename Get>
std::string fetch(Program program, Size size, Get get) {
  size_t bytes = 0;
  if (size(program, &bytes) != 0 || bytes == 0)
    return {};
  std::string text(bytes, '\0');
  if (get(program, text.data()) != 0)
    return {};
  return text;
}

/// The number before `unit` in ptxas' report, summed over its lines; the report
/// is prose ("32 bytes spill stores"), so this looks backwards from the unit.
int numberBefore(const std::string &log, const std::string &unit) {
  int total = 0;
  for (size_t at = log.find(unit); at != std::string::npos;
       at = log.find(unit, at + 1)) {
    size_t end = at;
    while (end > 0 && log[end - 1] == ' ')
      --end;
    size_t begin = end;
    while (begin > 0 &&
           std::isdigit(static_cast<unsigned char>(log[begin - 1])))
      --begin;
    if (begin < end)
      total += std::atoi(log.substr(begin, end - begin).c_str());
  }
  return total;
}

} // namespace

Result<NvrtcProgram> compileCuda(const std::string &source,
                                 const std::string &name,
                                 const std::string &arch, NvrtcImage image,
                                 const std::string &library) {
  Result<Nvrtc> api = openNvrtc(library);
  if (!api)
    return api.status();
  if (arch.rfind("sm_", 0) != 0)
    return Status(MEGALITH_INVALID_ARGUMENT,
                  fmt::format("arch is '{}', expected one like sm_90a", arch));
  Program program = nullptr;
  int error =
      api->create(&program, source.c_str(), name.c_str(), 0, nullptr, nullptr);
  if (error != 0)
    return Status(MEGALITH_INTERNAL,
                  fmt::format("nvrtc: {}", api->errorString(error)));
  bool ptx = image == NvrtcImage::Ptx;
  std::string archOption =
      "--gpu-architecture=" + (ptx ? "compute_" + arch.substr(3) : arch);
  std::vector<const char *> options = {archOption.c_str(), "--std=c++17",
                                       "--extra-device-vectorization"};
  if (!ptx)
    options.push_back("--ptxas-options=-v");
  error = api->compile(program, int(options.size()), options.data());
  NvrtcProgram result;
  result.log = fetch(program, api->logSize, api->log);
  if (error == 0) {
    result.image = ptx ? fetch(program, api->ptxSize, api->ptx)
                       : fetch(program, api->cubinSize, api->cubin);
    // NVRTC counts a text's NUL.
    if (ptx && !result.image.empty() && result.image.back() == '\0')
      result.image.pop_back();
    result.registers = numberBefore(result.log, " registers");
    result.spillBytes = numberBefore(result.log, " bytes spill stores") +
                        numberBefore(result.log, " bytes spill loads");
    result.stackBytes = numberBefore(result.log, " bytes stack frame");
  }
  api->destroy(&program);
  if (error != 0)
    return Status(MEGALITH_INTERNAL,
                  fmt::format("nvrtc cannot compile {} for {}: {}\n{}", name,
                              arch, api->errorString(error), result.log));
  return result;
}

} // namespace megalith
