# braid_layer(NAME [OPTIMISE LEVEL] DEPENDS ... WITHOUT ...): the static library of one folder of src/, from all its sources but those of
# the folders WITHOUT. A level is for what is not hot: Release's -O3 takes a fifth longer to compile than -O2, and that as much
# longer than -O1.
function(braid_layer name)
  cmake_parse_arguments(ARG "" "OPTIMISE" "DEPENDS;WITHOUT" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  foreach(folder ${ARG_WITHOUT})
    list(FILTER sources EXCLUDE REGEX "^${CMAKE_CURRENT_SOURCE_DIR}/${folder}/")
  endforeach()
  if(NOT sources)
    add_library(braid_${name} INTERFACE)
    target_include_directories(braid_${name} INTERFACE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
    target_link_libraries(braid_${name} INTERFACE ${ARG_DEPENDS})
    return()
  endif()
  add_library(braid_${name} STATIC ${sources})
  target_include_directories(braid_${name} PUBLIC ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(braid_${name} PUBLIC ${ARG_DEPENDS} PRIVATE braid_warnings)
  if(NOT BRAID_SANITIZE)  # a unity build has one file then; with sanitizers that would take gigabytes
    set_target_properties(braid_${name} PROPERTIES UNITY_BUILD_BATCH_SIZE 128)
  endif()
  if(ARG_OPTIMISE AND NOT BRAID_SANITIZE)
    target_compile_options(braid_${name} PRIVATE $<$<CONFIG:Release>:-O${ARG_OPTIMISE}>)
  endif()
endfunction()

# braid_test(NAME DEPENDS ... LABELS ... WITHOUT ...): one GoogleTest program from the *_test.cpp (and helper) sources of the current folder,
# but for those WITHOUT. Each of its cases becomes a CTest test; with sanitizers the whole program is one, because their start takes longer
# than most cases.
function(braid_test name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LABELS;WITHOUT" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp)
  list(TRANSFORM ARG_WITHOUT PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  list(REMOVE_ITEM sources ${ARG_WITHOUT} "")
  if(NOT sources)
    return()
  endif()
  add_executable(test_${name} ${sources})
  target_include_directories(test_${name} PRIVATE ${PROJECT_SOURCE_DIR}/test)
  target_link_libraries(test_${name} PRIVATE ${ARG_DEPENDS} GTest::gmock GTest::gtest_main braid_warnings)
  target_compile_definitions(test_${name} PRIVATE BRAID_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  if(BRAID_SANITIZE MATCHES "thread")
    # gcc 12's TSan finds its shadow memory taken where the kernel randomises addresses with more than 28 bits.
    find_program(BRAID_SETARCH setarch REQUIRED)
    set_target_properties(test_${name} PROPERTIES CROSSCOMPILING_EMULATOR "${BRAID_SETARCH};-R")
  endif()
  set(labels)  # an empty LABELS would take TIMEOUT for a label
  if(ARG_LABELS)
    set(labels LABELS "${ARG_LABELS}")
  endif()
  if(BRAID_SANITIZE)
    add_test(NAME ${name} COMMAND test_${name} --gtest_brief=1)
    set_tests_properties(${name} PROPERTIES ${labels} TIMEOUT 3600)
    if("heavy" IN_LIST ARG_LABELS)  # which no preset runs with them
      set_target_properties(test_${name} PROPERTIES EXCLUDE_FROM_ALL ON)
    endif()
  else()
    gtest_discover_tests(test_${name} TEST_PREFIX ${name}. DISCOVERY_TIMEOUT 60
      PROPERTIES ${labels} TIMEOUT 300)
  endif()
  if("tsan" IN_LIST ARG_LABELS)
    add_dependencies(braid_tsan_tests test_${name})
  endif()
endfunction()
