# braid_layer(NAME DEPENDS ...): the static library of one folder of src/, from all its sources.
function(braid_layer name)
  cmake_parse_arguments(ARG "" "" "DEPENDS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  if(NOT sources)
    add_library(braid_${name} INTERFACE)
    return()
  endif()
  add_library(braid_${name} STATIC ${sources})
  target_include_directories(braid_${name} PUBLIC ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(braid_${name} PUBLIC ${ARG_DEPENDS} PRIVATE braid_warnings)
endfunction()

# braid_test(NAME DEPENDS ... LABELS ...): one GoogleTest program from the *_test.cpp (and helper) sources of the current folder.
# Each of its test cases becomes a CTest test.
function(braid_test name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LABELS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  if(NOT sources)
    return()
  endif()
  add_executable(test_${name} ${sources})
  target_include_directories(test_${name} PRIVATE ${PROJECT_SOURCE_DIR}/test)
  target_link_libraries(test_${name} PRIVATE ${ARG_DEPENDS} GTest::gmock GTest::gtest_main braid_warnings)
  target_compile_definitions(test_${name} PRIVATE BRAID_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  gtest_discover_tests(test_${name} TEST_PREFIX ${name}. DISCOVERY_TIMEOUT 60
    PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT 300)
endfunction()
