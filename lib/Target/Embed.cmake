# SPDX-License-Identifier: Apache-2.0
# Writes OUTPUT: a function mega::detail::FUNCTION() that returns FILES as
# (name, text) pairs, in the order given. Names are relative to ROOT, if that is
# set, else without a folder.
set(TEXT "// Written by Embed.cmake.\n#include <string_view>\n#include <utility>\n#include <vector>\n\nnamespace mega::detail {\nstd::vector<std::pair<std::string_view, std::string_view>> ${FUNCTION}() {\n  return {\n")
foreach(FILE ${FILES})
  if(ROOT)
    file(RELATIVE_PATH NAME ${ROOT} ${FILE})
  else()
    get_filename_component(NAME ${FILE} NAME)
  endif()
  file(READ ${FILE} CONTENT)
  string(APPEND TEXT "      {\"${NAME}\", R\"embed(${CONTENT})embed\"},\n")
endforeach()
string(APPEND TEXT "  };\n}\n} // namespace mega::detail\n")
file(WRITE ${OUTPUT} "${TEXT}")
