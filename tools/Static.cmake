# SPDX-License-Identifier: Apache-2.0
# megalith_add_static(NAME SOURCES...): a tool for machines without MLIR, LLVM or
# fmt. It needs nothing but the C library. Our archives are linked by file name, so
# that their link interface does not bring libMLIR.so; the runtime is compiled
# once more with fmt in its headers, because fmt comes as a shared library only.
# Built on request only.

set(MEGALITH_STATIC_LLVM
  MLIRIR MLIRSupport MLIRParser MLIRAsmParser
  MLIRBytecodeReader MLIRBytecodeWriter MLIRBytecodeOpInterface
  MLIRArithDialect MLIRMathDialect MLIRUBDialect MLIRDialect MLIRDialectUtils
  MLIRFunctionInterfaces MLIRCallInterfaces MLIRControlFlowInterfaces
  MLIRCastInterfaces MLIRSideEffectInterfaces MLIRInferTypeOpInterface
  MLIRInferIntRangeInterface MLIRInferIntRangeCommon MLIRConvertToLLVMInterface
  MLIRVectorInterfaces MLIRDestinationStyleOpInterface
  LLVMSupport LLVMDemangle)
list(TRANSFORM MEGALITH_STATIC_LLVM
  REPLACE "(.+)" "${LLVM_LIBRARY_DIR}/lib\\1.a")

find_package(nlohmann_json REQUIRED)
find_package(Threads REQUIRED)
get_target_property(runtime_sources MegalithRuntimeObjects SOURCES)
get_target_property(runtime_dir MegalithRuntimeObjects SOURCE_DIR)
list(TRANSFORM runtime_sources PREPEND ${runtime_dir}/)

add_library(MegalithStaticRuntime OBJECT EXCLUDE_FROM_ALL ${runtime_sources})
target_compile_definitions(MegalithStaticRuntime PRIVATE FMT_HEADER_ONLY)
target_compile_options(MegalithStaticRuntime PRIVATE
  -ffp-contract=off -ffunction-sections -fdata-sections)
target_include_directories(MegalithStaticRuntime PRIVATE ${runtime_dir}/include)
target_link_libraries(MegalithStaticRuntime PRIVATE nlohmann_json::nlohmann_json)

function(megalith_add_static name)
  add_executable(${name} EXCLUDE_FROM_ALL ${ARGN}
    $<TARGET_OBJECTS:MegalithStaticRuntime>)
  set_target_properties(${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${LLVM_RUNTIME_OUTPUT_INTDIR})
  add_dependencies(${name} MegaReference MegaAnalysis MegaIR
    MegalithSim mlir-headers)
  target_compile_definitions(${name} PRIVATE FMT_HEADER_ONLY)
  target_compile_options(${name} PRIVATE
    -ffp-contract=off -ffunction-sections -fdata-sections)
  target_include_directories(${name} PRIVATE
    ${CMAKE_SOURCE_DIR}/runtime/include)
  target_link_libraries(${name} PRIVATE
    $<TARGET_FILE:MegaReference> $<TARGET_FILE:MegaAnalysis>
    $<TARGET_FILE:MegaIR> $<TARGET_FILE:MegalithSim>
    -Wl,--start-group ${MEGALITH_STATIC_LLVM} -Wl,--end-group
    nlohmann_json::nlohmann_json Threads::Threads ${CMAKE_DL_LIBS})
  target_link_options(${name} PRIVATE
    -static-libstdc++ -static-libgcc -Wl,--gc-sections -s)
endfunction()
