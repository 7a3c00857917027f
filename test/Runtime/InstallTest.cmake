# SPDX-License-Identifier: Apache-2.0
# Installs the runtime into a folder, builds the C and C++ examples against it
# by find_package and by pkg-config, and runs them on the bundle BUNDLE. Without
# a driver making an instance is an error with a message, and no crash.
#   cmake -DBUILD=... -DSOURCE=... -DWORK=... -DBUNDLE=... -P InstallTest.cmake
cmake_minimum_required(VERSION 3.22)

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status
    OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "${ARGN}: ${status}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

function(expect text)
  string(FIND "${output}" "${text}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "no '${text}' in:\n${output}")
  endif()
endfunction()

file(REMOVE_RECURSE ${WORK})
set(prefix ${WORK}/prefix)
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix} --component megalith)
# What find_package and pkg-config say must not depend on where it was installed.
file(RENAME ${prefix} ${WORK}/moved)
set(prefix ${WORK}/moved)
file(GLOB_RECURSE installed RELATIVE ${prefix} ${prefix}/*)
if(NOT "include/mega/runtime/megalith.hpp" IN_LIST installed)
  message(FATAL_ERROR "megalith.hpp is not in: ${installed}")
endif()

# The library needs the C library and nothing else.
file(GLOB library ${prefix}/lib*/libmegalith.so ${prefix}/lib/*/libmegalith.so)
run(${CMAKE_COMMAND} -E env LC_ALL=C readelf -d ${library})
string(REGEX MATCHALL "Shared library: \\[[^]]*" needed "${output}")
foreach(entry ${needed})
  if(NOT entry MATCHES
     "\\[(libc\\.|libm\\.|libdl\\.|libpthread\\.|ld-linux)")
    message(FATAL_ERROR "libmegalith.so needs ${entry}")
  endif()
endforeach()

run(${CMAKE_COMMAND} -S ${SOURCE}/examples/c -B ${WORK}/examples
  -DCMAKE_PREFIX_PATH=${prefix})
run(${CMAKE_COMMAND} --build ${WORK}/examples)
run(${WORK}/examples/decode ${BUNDLE})
expect("block sample")
expect("state kv bf16 [-1, 8]")
expect("4 checkpoint tensors")
run(${WORK}/examples/serve ${BUNDLE})
expect("block sample: 2 states")

# An error is a message and status 1.
foreach(program decode serve)
  execute_process(COMMAND ${WORK}/examples/${program} ${WORK}/absent
    RESULT_VARIABLE status ERROR_VARIABLE output)
  expect("${program}: MEGALITH_IO_ERROR: cannot open '${WORK}/absent/manif")
  execute_process(COMMAND ${WORK}/examples/${program} ${BUNDLE} ${WORK}/absent
    RESULT_VARIABLE status OUTPUT_QUIET ERROR_VARIABLE output)
  if(NOT status EQUAL 1)
    message(FATAL_ERROR "${program} without weights: ${status}\n${output}")
  endif()
  # With a driver the next thing that is missing is the cubin.
  if(NOT output MATCHES "${program}: MEGALITH_(NO_DRIVER|IO_ERROR|NO_KERNEL)")
    message(FATAL_ERROR "${program} without weights:\n${output}")
  endif()
endforeach()

find_program(PKG_CONFIG pkg-config)
if(PKG_CONFIG)
  file(GLOB pc ${prefix}/lib*/pkgconfig ${prefix}/lib/*/pkgconfig)
  set(ENV{PKG_CONFIG_PATH} ${pc})
  run(${PKG_CONFIG} --modversion megalith)
  expect("0.1.0")
  run(${PKG_CONFIG} --cflags --libs megalith)
  separate_arguments(flags UNIX_COMMAND "${output}")
  run(${CC} ${SOURCE}/examples/c/decode.c -o ${WORK}/decode ${flags} -lm)
  get_filename_component(folder ${library} DIRECTORY)
  set(ENV{LD_LIBRARY_PATH} ${folder})
  run(${WORK}/decode ${BUNDLE})
  expect("block sample")
endif()
