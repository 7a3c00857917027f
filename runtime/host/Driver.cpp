// SPDX-License-Identifier: Apache-2.0

#include "Driver.h"

#include "Error.h"

#include <atomic>

#include <dlfcn.h>

using namespace megalith;

namespace {

constexpr const char *libraryName = "libcuda.so.1";
constexpr const char *withoutDriver =
    "everything but launching works without it";

/// What a dlfcn call left, as text.
std::string loaderError() {
  const char *text = ::dlerror();
  return text ? text : "unknown error";
}

/// Opens the library and fills a table; the library is never closed, since
/// the driver does not support being unloaded.
Driver loadDriver() {
  void *library = ::dlopen(libraryName, RTLD_NOW | RTLD_LOCAL);
  if (!library)
    fail(MEGALITH_NO_DRIVER, "{} could not be opened ({}); {}", libraryName,
         loaderError(), withoutDriver);
  Driver driver;
  auto find = [&](const char *symbol) {
    void *address = ::dlsym(library, symbol);
    if (!address)
      fail(MEGALITH_NO_DRIVER, "{} has no {}, so it is too old; {}",
           libraryName, symbol, withoutDriver);
    return address;
  };
#define MEGALITH_DRIVER_LOAD(name, symbol, parameters)                         \
  driver.name = reinterpret_cast<decltype(driver.name)>(find(symbol));
  MEGALITH_DRIVER_FUNCTIONS(MEGALITH_DRIVER_LOAD)
#undef MEGALITH_DRIVER_LOAD
  return driver;
}

std::atomic<const Driver *> replacement{nullptr};

} // namespace

const Driver &megalith::openDriver() {
  if (const Driver *driver = replacement.load())
    return *driver;
  // A failed initialisation is tried again by the next call.
  static const Driver driver = loadDriver();
  return driver;
}

void megalith::replaceDriver(const Driver *driver) {
  replacement.store(driver);
}

void megalith::checkDriver(const Driver &driver, CUresult result,
                           const char *call) {
  if (result == CUDA_SUCCESS)
    return;
  const char *name = nullptr;
  const char *text = nullptr;
  driver.cuGetErrorName(result, &name);
  driver.cuGetErrorString(result, &text);
  fail(result == CUDA_ERROR_OUT_OF_MEMORY ? MEGALITH_RESOURCE_LIMIT
                                          : MEGALITH_DRIVER_ERROR,
       "{}: {} ({}): {}", call, name ? name : "unknown error", result,
       text ? text : "no description");
}
