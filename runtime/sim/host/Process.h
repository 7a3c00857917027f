// SPDX-License-Identifier: Apache-2.0
/// \file
/// Runs a program to its end.

#ifndef MEGA_SIM_HOST_PROCESS_H
#define MEGA_SIM_HOST_PROCESS_H

#include <string>
#include <vector>

namespace megalith::sim {

/// Exit status; 127 if the program cannot be started, 128 + n for signal n.
/// `output` receives what it writes to stdout and stderr. No shell.
int runProcess(const std::vector<std::string> &arguments, std::string &output);

} // namespace megalith::sim

#endif
