# SPDX-License-Identifier: Apache-2.0
# Writes OUTPUT: megalith::sim::preludeFiles(), which returns FILES (relative to
# ROOT) as (name, text) pairs.
set(TEXT "// Written by Embed.cmake.\n#include \"Prelude.h\"\n\nstd::vector<std::pair<std::string_view, std::string_view>>\nmegalith::sim::preludeFiles() {\n  return {\n")
foreach(FILE ${FILES})
  file(READ ${ROOT}/${FILE} CONTENT)
  string(APPEND TEXT "      {\"${FILE}\", R\"embed(${CONTENT})embed\"},\n")
endforeach()
string(APPEND TEXT "  };\n}\n")
file(WRITE ${OUTPUT} "${TEXT}")
