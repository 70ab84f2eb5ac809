# `cmake --install BUILD --component library`: what find_package(braid) finds (docs/library.md). Plain `cmake --install` leaves it out.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)
get_property(layers GLOBAL PROPERTY braid_layers)
set(config_folder ${CMAKE_INSTALL_LIBDIR}/cmake/braid)
install(TARGETS ${layers} braid_asio braid_fmt braid_warnings EXPORT braid
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}/braid COMPONENT library EXCLUDE_FROM_ALL
  INCLUDES DESTINATION include)
install(EXPORT braid NAMESPACE braid:: FILE braid_targets.cmake DESTINATION ${config_folder} COMPONENT library EXCLUDE_FROM_ALL)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/braid DESTINATION include COMPONENT library EXCLUDE_FROM_ALL)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/braidConfig.cmake.in ${PROJECT_BINARY_DIR}/library/braidConfig.cmake
  INSTALL_DESTINATION ${config_folder})
# Another version may be another interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/library/braidConfigVersion.cmake COMPATIBILITY ExactVersion)
install(FILES ${PROJECT_BINARY_DIR}/library/braidConfig.cmake ${PROJECT_BINARY_DIR}/library/braidConfigVersion.cmake
  DESTINATION ${config_folder} COMPONENT library EXCLUDE_FROM_ALL)
