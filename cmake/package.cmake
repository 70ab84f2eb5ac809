# `cmake --build build/release --target package`: a .deb of the server for the distribution that it is built on. What only a package
# installs is the component `package`; `cmake --install` leaves it out.
if(NOT BRAID_TIERS STREQUAL "all")
  return()  # it would be for this machine alone
endif()
function(braid_package_file file destination)
  install(FILES ${file} DESTINATION ${destination} COMPONENT package EXCLUDE_FROM_ALL ${ARGN})
endfunction()

# Who is asked about a package is who makes it, by the variables of Debian's own tools.
set(nobody "braid maintainers <braid@example.org>")
set(maker "${nobody}")
if(DEFINED ENV{DEBFULLNAME} AND DEFINED ENV{DEBEMAIL})
  set(maker "$ENV{DEBFULLNAME} <$ENV{DEBEMAIL}>")
endif()
set(BRAID_MAINTAINER "${maker}" CACHE STRING "Who is asked about the package")
if(BRAID_MAINTAINER STREQUAL nobody)
  message(STATUS "A package will name nobody to ask about it: set DEBFULLNAME and DEBEMAIL, or BRAID_MAINTAINER")
endif()

# The units as shipped are for a binary that was installed by hand.
foreach(name braid braid-user)
  file(READ ${PROJECT_SOURCE_DIR}/deploy/systemd/${name}.service unit)
  string(REPLACE /usr/local/bin/ /usr/bin/ unit "${unit}")
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/package/${name}.service CONTENT "${unit}" @ONLY)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/deploy/systemd/${name}.service)
endforeach()

braid_package_file(${PROJECT_BINARY_DIR}/package/braid.service lib/systemd/system)
braid_package_file(${PROJECT_BINARY_DIR}/package/braid-user.service lib/systemd/user RENAME braid.service)
braid_package_file(${PROJECT_SOURCE_DIR}/deploy/systemd/braid.socket lib/systemd/system)
braid_package_file(${PROJECT_SOURCE_DIR}/deploy/systemd/sysusers.conf lib/sysusers.d RENAME braid.conf)
braid_package_file(${PROJECT_SOURCE_DIR}/deploy/braid.yaml /etc/braid)
foreach(example nginx/braid.conf nginx/braid-upstreams.conf caddy/Caddyfile haproxy/braid.cfg envoy/envoy.yaml grafana/braid.json
    prometheus/alerts.yml prometheus/prometheus.yml kubernetes/braid.yaml openrc/braid logrotate/braid)
  get_filename_component(folder ${example} DIRECTORY)
  braid_package_file(${PROJECT_SOURCE_DIR}/deploy/${example} share/doc/braid/examples/${folder})
endforeach()

# The manual is what --help says, as pages.
add_custom_command(OUTPUT ${PROJECT_BINARY_DIR}/package/braid.1.gz DEPENDS braid ${PROJECT_SOURCE_DIR}/scripts/manual VERBATIM
  COMMAND ${PROJECT_SOURCE_DIR}/scripts/manual $<TARGET_FILE:braid> ${PROJECT_BINARY_DIR}/package/braid.1
  COMMAND gzip -9nf ${PROJECT_BINARY_DIR}/package/braid.1)
add_custom_target(braid_manual ALL DEPENDS ${PROJECT_BINARY_DIR}/package/braid.1.gz)
braid_package_file(${PROJECT_BINARY_DIR}/package/braid.1.gz share/man/man1)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/deploy/debian/changelog)
file(READ ${PROJECT_SOURCE_DIR}/deploy/debian/changelog changelog)
string(REPLACE "${nobody}" "${BRAID_MAINTAINER}" changelog "${changelog}")
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/package/changelog CONTENT "${changelog}" @ONLY)
add_custom_command(OUTPUT ${PROJECT_BINARY_DIR}/package/changelog.gz DEPENDS ${PROJECT_BINARY_DIR}/package/changelog VERBATIM
  COMMAND gzip -9nkf ${PROJECT_BINARY_DIR}/package/changelog)
add_custom_target(braid_changelog ALL DEPENDS ${PROJECT_BINARY_DIR}/package/changelog.gz)
braid_package_file(${PROJECT_BINARY_DIR}/package/changelog.gz share/doc/braid)
braid_package_file(${PROJECT_SOURCE_DIR}/deploy/debian/copyright share/doc/braid)
set(openapi ${PROJECT_SOURCE_DIR}/src/net/docs/openapi.json)
if(BRAID_PYTHON)
  add_custom_command(OUTPUT ${PROJECT_BINARY_DIR}/package/api.md DEPENDS ${openapi} ${PROJECT_SOURCE_DIR}/scripts/api-reference VERBATIM
    COMMAND ${BRAID_PYTHON} ${PROJECT_SOURCE_DIR}/scripts/api-reference ${PROJECT_BINARY_DIR}/package/api.md)
  add_custom_target(braid_api_reference ALL DEPENDS ${PROJECT_BINARY_DIR}/package/api.md)
  braid_package_file(${PROJECT_BINARY_DIR}/package/api.md share/doc/braid)
endif()
file(GLOB documents CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/docs/*.md)
foreach(document README.md ${documents} models/MODEL_CARD.md)
  braid_package_file(${PROJECT_SOURCE_DIR}/${document} share/doc/braid)
endforeach()

# What shells complete with, as the program itself writes it.
set(completion ${PROJECT_BINARY_DIR}/package/completion)
install(CODE "
  file(MAKE_DIRECTORY ${completion})
  foreach(shell bash zsh fish)
    execute_process(COMMAND $<TARGET_FILE:braid> completion \${shell} OUTPUT_FILE ${completion}/\${shell} COMMAND_ERROR_IS_FATAL ANY)
  endforeach()" COMPONENT package EXCLUDE_FROM_ALL)
braid_package_file(${completion}/bash share/bash-completion/completions RENAME braid)
braid_package_file(${completion}/zsh share/zsh/vendor-completions RENAME _braid)
braid_package_file(${completion}/fish share/fish/vendor_completions.d RENAME braid.fish)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME braid)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "LLM inference server for CPUs with OpenAI's HTTP API")
set(CPACK_PACKAGE_DESCRIPTION "braid reads GGUF files and folders of the hub, and serves many clients at
once with continuous batching. A small chat model is part of the binary.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)

# Everything is one package.
set(CPACK_COMPONENTS_ALL Unspecified package)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_DEB_COMPONENT_INSTALL ON)

set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_MAINTAINER "${BRAID_MAINTAINER}")
set(CPACK_DEBIAN_PACKAGE_SECTION net)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
file(WRITE ${PROJECT_BINARY_DIR}/package/conffiles "/etc/braid/braid.yaml\n")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA
  ${PROJECT_BINARY_DIR}/package/conffiles
  ${PROJECT_SOURCE_DIR}/deploy/debian/postinst
  ${PROJECT_SOURCE_DIR}/deploy/debian/prerm
  ${PROJECT_SOURCE_DIR}/deploy/debian/postrm)
include(CPack)
