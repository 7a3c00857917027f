// SPDX-License-Identifier: Apache-2.0

#include "Process.h"

#include "Error.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

using namespace megalith;

extern char **environ;

int megalith::sim::runProcess(const std::vector<std::string> &arguments,
                              std::string &output) {
  int ends[2];
  if (::pipe(ends) != 0)
    fail(MEGALITH_IO_ERROR, "cannot make a pipe: {}", std::strerror(errno));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 2);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  posix_spawn_file_actions_addclose(&actions, ends[1]);
  std::vector<char *> argv;
  for (const std::string &argument : arguments)
    argv.push_back(const_cast<char *>(argument.c_str()));
  argv.push_back(nullptr);
  pid_t child;
  int error =
      ::posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  if (error != 0) {
    ::close(ends[0]);
    output = std::strerror(error);
    return 127;
  }
  char buffer[4096];
  for (;;) {
    ssize_t got = ::read(ends[0], buffer, sizeof buffer);
    if (got > 0)
      output.append(buffer, size_t(got));
    else if (got == 0 || errno != EINTR)
      break;
  }
  ::close(ends[0]);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR)
    ;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
