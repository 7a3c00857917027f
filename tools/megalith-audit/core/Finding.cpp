// SPDX-License-Identifier: Apache-2.0
/// \file
/// What an audit found, as a table and as JSON.

#include "Finding.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

using namespace mega::audit;

const char *mega::audit::outcomeName(Outcome outcome) {
  switch (outcome) {
  case Outcome::Pass:
    return "pass";
  case Outcome::Fail:
    return "FAIL";
  case Outcome::Partial:
    return "partial";
  case Outcome::Skipped:
    return "skipped";
  }
  return "";
}

static long countOf(const Audit &audit, Outcome outcome) {
  return std::count_if(
      audit.findings.begin(), audit.findings.end(),
      [&](const Finding &finding) { return finding.outcome == outcome; });
}

bool Audit::passed() const { return countOf(*this, Outcome::Fail) == 0; }

std::string Audit::verdict() const {
  std::string text = passed() ? "PASS" : "FAIL";
  if (long failed = countOf(*this, Outcome::Fail))
    text += fmt::format(", {} of {} checks failed", failed, findings.size());
  if (long partial = countOf(*this, Outcome::Partial))
    text += fmt::format(", {} partial", partial);
  if (long skipped = countOf(*this, Outcome::Skipped))
    text += fmt::format(", {} skipped", skipped);
  return text;
}

std::string mega::audit::tableOf(const Audit &audit) {
  std::string text = fmt::format("bundle {}, block {}, on {}\n", audit.bundle,
                                 audit.block, audit.subject);
  size_t width = 0;
  for (const Finding &finding : audit.findings)
    width = std::max(width, finding.check.size());
  for (const Finding &finding : audit.findings)
    text += fmt::format("  {:<{}}  {:<7}  {}\n", finding.check, width,
                        outcomeName(finding.outcome), finding.detail);
  return text + fmt::format("verdict: {}\n", audit.verdict());
}

std::string mega::audit::jsonOf(const Audit &audit) {
  nlohmann::ordered_json checks = nlohmann::ordered_json::array();
  for (const Finding &finding : audit.findings) {
    std::string outcome = outcomeName(finding.outcome);
    std::transform(outcome.begin(), outcome.end(), outcome.begin(), ::tolower);
    checks.push_back({{"check", finding.check},
                      {"outcome", outcome},
                      {"detail", finding.detail}});
  }
  nlohmann::ordered_json json = {
      {"bundle", audit.bundle},   {"block", audit.block},
      {"subject", audit.subject}, {"checks", std::move(checks)},
      {"passed", audit.passed()}, {"verdict", audit.verdict()}};
  // Names may come from anywhere.
  return json.dump(2, ' ', false,
                   nlohmann::ordered_json::error_handler_t::replace) +
         "\n";
}
