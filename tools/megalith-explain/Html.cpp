// SPDX-License-Identifier: Apache-2.0
/// \file
/// The page: page.html with the data in the place of its marker.

#include "Formats.h"

#include "llvm/Support/FormatVariadic.h"

#include <string_view>
#include <utility>

using namespace mega::explain;
namespace json = llvm::json;

namespace mega::detail {
/// page.html, embedded by CMake: (file name, text).
std::vector<std::pair<std::string_view, std::string_view>> explainPageFiles();
} // namespace mega::detail

/// Spans as arrays of [begin, end], in units of 10 ns.
static json::Array
spansJson(const std::vector<std::vector<std::pair<double, double>>> &spans) {
  json::Array rows;
  for (const auto &row : spans) {
    json::Array ctas;
    for (auto [begin, end] : row)
      ctas.push_back(json::Array{int64_t(std::round(begin * 100)),
                                 int64_t(std::round(end * 100))});
    rows.push_back(std::move(ctas));
  }
  return rows;
}

void mega::explain::printHtml(const Explanation &x, llvm::raw_ostream &os) {
  json::Object data = jsonOf(x);
  data["predicted_spans"] = spansJson(predictedSpans(x));
  if (x.measured && !x.measured->spans.empty())
    data["measured_spans"] = spansJson(x.measured->spans);
  std::string text = llvm::formatv("{0}", json::Value(std::move(data)));
  // Nothing in a string may end the script element.
  std::string safe;
  for (char c : text)
    safe += c == '<' ? std::string("\\u003c") : std::string(1, c);
  auto [name, page] = mega::detail::explainPageFiles().front();
  auto [before, after] =
      llvm::StringRef(page.data(), page.size()).split("/*DATA*/null");
  os << before << safe << after;
}
