// SPDX-License-Identifier: Apache-2.0
/// \file
/// Counts calls of the CUDA driver.

#include "CallLog.h"

#include "Driver.h"
#include "Error.h"

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <vector>

#include <dlfcn.h>

using namespace mega::audit;
using namespace megalith;

namespace {

enum class Source { None, Table, Cupti };

/// The one log that is open; callbacks have no other way to it.
struct Counter {
  std::atomic<Source> source{Source::None};
  std::mutex mutex;
  std::map<std::string, long> counts;
  void add(Source from, const std::string &name) {
    if (source != from)
      return;
    std::lock_guard<std::mutex> lock(mutex);
    ++counts[name];
  }
};

Counter &counter() {
  static Counter instance;
  return instance;
}

//===----------------------------------------------------------------------===//
// CUPTI: callbacks of the driver's API. Declared as in cupti_callbacks.h, whose
// layout has not changed since CUDA 5.
//===----------------------------------------------------------------------===//

struct CallbackData {
  int site; ///< 0 on entry, 1 on exit
  const char *functionName;
  const void *parameters;
  void *returnValue;
  const char *symbolName;
};

constexpr int driverApiDomain = 1;

struct Cupti {
  int (*subscribe)(void **, void (*)(void *, int, uint32_t, const void *),
                   void *);
  int (*unsubscribe)(void *);
  int (*enableDomain)(uint32_t, void *, int);
};

/// cuMemAlloc_v2 and cuLaunchKernel_ptsz are cuMemAlloc and cuLaunchKernel.
std::string plainName(std::string name) {
  for (const char *suffix : {"_ptsz", "_ptds", "_v2", "_v3", "_v4"}) {
    size_t length = std::strlen(suffix);
    if (name.size() > length &&
        name.compare(name.size() - length, length, suffix) == 0)
      name.resize(name.size() - length);
  }
  return name;
}

void countCall(void *, int domain, uint32_t, const void *data) {
  const auto *call = static_cast<const CallbackData *>(data);
  if (domain == driverApiDomain && call->site == 0)
    counter().add(Source::Cupti, plainName(call->functionName));
}

/// Where CUPTI may be, most wanted first.
std::vector<std::string> candidates(const std::string &library) {
  if (!library.empty())
    return {library};
  if (const char *path = std::getenv("MEGALITH_CUPTI"); path && *path)
    return {path};
  std::vector<std::string> paths = {"libcupti.so.13", "libcupti.so.12",
                                    "libcupti.so"};
  const char *home = std::getenv("CUDA_HOME");
  for (std::string base : {home ? home : "", "/usr/local/cuda"})
    if (!base.empty())
      for (const char *folder : {"/lib64", "/extras/CUPTI/lib64"})
        paths.push_back(base + folder + "/libcupti.so");
  return paths;
}

/// Fills the table; false and a reason if that is not possible.
bool openCupti(const std::string &library, Cupti &cupti, std::string &reason) {
  void *handle = nullptr;
  for (const std::string &path : candidates(library))
    if ((handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)))
      break;
  if (!handle) {
    reason = "cupti could not be opened";
    return false;
  }
  auto bind = [&](auto &function, const char *name) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(
        ::dlsym(handle, name));
    if (!function)
      reason = fmt::format("cupti has no {}", name);
  };
  bind(cupti.subscribe, "cuptiSubscribe");
  bind(cupti.unsubscribe, "cuptiUnsubscribe");
  bind(cupti.enableDomain, "cuptiEnableDomain");
  return reason.empty();
}

//===----------------------------------------------------------------------===//
// The runtime's table with a counter before each function
//===----------------------------------------------------------------------===//

const Driver *machineDriver = nullptr;

/// A function of the table that counts and forwards; `Member` names it.
template <auto Member> struct Counted;
template <typename... Args, CUresult (*Driver::*Member)(Args...)>
struct Counted<Member> {
  static inline const char *name = nullptr;
  static CUresult call(Args... args) {
    counter().add(Source::Table, name);
    return (machineDriver->*Member)(args...);
  }
};

Driver countedTable() {
  Driver table;
#define MEGA_AUDIT_COUNT(member, symbol, parameters)                           \
  Counted<&Driver::member>::name = #member;                                    \
  table.member = &Counted<&Driver::member>::call;
  MEGALITH_DRIVER_FUNCTIONS(MEGA_AUDIT_COUNT)
#undef MEGA_AUDIT_COUNT
  return table;
}

} // namespace

struct CallLog::Impl {
  std::string source;
  Cupti cupti{};
  void *subscriber = nullptr;
};

CallLog::CallLog(const std::string &library) : impl(new Impl) {
  std::string reason;
  if (openCupti(library, impl->cupti, reason)) {
    int result = impl->cupti.subscribe(&impl->subscriber, countCall, nullptr);
    if (result == 0)
      result = impl->cupti.enableDomain(1, impl->subscriber, driverApiDomain);
    if (result == 0) {
      impl->source = "cupti";
      counter().source = Source::Cupti;
      clear();
      return;
    }
    if (impl->subscriber)
      impl->cupti.unsubscribe(impl->subscriber);
    impl->subscriber = nullptr;
    reason = fmt::format("cupti refuses to subscribe (error {})", result);
  }
  impl->source = "the runtime's calls; " + reason;
  counter().source = Source::Table;
  clear();
}

void CallLog::installTable() {
  machineDriver = &openDriver();
  static const Driver table = countedTable();
  replaceDriver(&table);
}

CallLog::~CallLog() {
  counter().source = Source::None;
  if (impl->subscriber)
    impl->cupti.unsubscribe(impl->subscriber);
}

const std::string &CallLog::source() const { return impl->source; }

void CallLog::clear() {
  std::lock_guard<std::mutex> lock(counter().mutex);
  counter().counts.clear();
}

std::map<std::string, long> CallLog::counts() const {
  std::lock_guard<std::mutex> lock(counter().mutex);
  return counter().counts;
}

CallSummary mega::audit::summarize(const std::map<std::string, long> &counts) {
  CallSummary summary;
  auto has = [](const std::string &name, const char *part) {
    return name.find(part) != std::string::npos;
  };
  for (const auto &[name, count] : counts) {
    if (has(name, "Launch"))
      summary.launches += count;
    else if (has(name, "Mem") || has(name, "Synchronize") ||
             has(name, "ModuleLoad") || has(name, "LibraryLoad") ||
             has(name, "Graph"))
      summary.others[name] += count;
  }
  return summary;
}
