# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` gives to others: the library, its headers, and how
# CMake and pkg-config find them. Component megalith; nothing of it needs MLIR.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/megalith)

install(TARGETS megalith EXPORT megalith
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    COMPONENT megalith NAMELINK_COMPONENT megalith)
install(FILES
  include/mega/runtime/megalith.h include/mega/runtime/megalith.hpp
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/mega/runtime COMPONENT megalith)

# megalith::megalith
install(EXPORT megalith NAMESPACE megalith:: FILE megalithTargets.cmake
  DESTINATION ${package_dir} COMPONENT megalith)
configure_package_config_file(cmake/megalithConfig.cmake.in
  ${CMAKE_CURRENT_BINARY_DIR}/megalithConfig.cmake
  INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(
  ${CMAKE_CURRENT_BINARY_DIR}/megalithConfigVersion.cmake
  VERSION ${MEGALITH_VERSION} COMPATIBILITY SameMinorVersion)
install(FILES
  ${CMAKE_CURRENT_BINARY_DIR}/megalithConfig.cmake
  ${CMAKE_CURRENT_BINARY_DIR}/megalithConfigVersion.cmake
  DESTINATION ${package_dir} COMPONENT megalith)

# Relative to the .pc file, so that a prefix can be moved.
file(RELATIVE_PATH pc_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(cmake/megalith.pc.in
  ${CMAKE_CURRENT_BINARY_DIR}/megalith.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/megalith.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT megalith)
