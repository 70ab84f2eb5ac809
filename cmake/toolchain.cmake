# Flags that every target shares.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

find_program(BRAID_CCACHE ccache)
if(BRAID_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${BRAID_CCACHE})
endif()

# Whether kernels for x86-64 are part of the program, its tests and benchmarks.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|amd64|AMD64)$")
  set(BRAID_X86 ON)
else()
  set(BRAID_X86 OFF)
endif()

# The numerics contract: no contraction of a*b+c unless an intrinsic or std::fma asks for it.
add_compile_options(-ffp-contract=off)
add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fno-math-errno>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Kilobytes that the compiler takes before it looks for garbage, which is a tenth of its time from the usual 128 MiB on.
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:--param=ggc-min-heapsize=800000>)
endif()

# simdjson's library chooses among its forms of code; its header would compile all of them again in each file that includes it.
# simdjson::dom calls the library; what the header itself compiles (ondemand) would be the slowest form.
add_compile_definitions(SIMDJSON_IMPLEMENTATION_ICELAKE=0 SIMDJSON_IMPLEMENTATION_HASWELL=0 SIMDJSON_IMPLEMENTATION_WESTMERE=0)

if(BRAID_SANITIZE)
  add_compile_options(-fsanitize=${BRAID_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all -g1)
  add_link_options(-fsanitize=${BRAID_SANITIZE})
  add_compile_options(-UNDEBUG)
  if(BRAID_SANITIZE MATCHES "address")
    # UBSan's descriptions of its checks are 1.5 million addresses, which each start of the server would relocate: two fifths of its time.
    add_link_options(-no-pie)
  endif()
  if(BRAID_SANITIZE MATCHES "undefined")
    # They check every access. AddressSanitizer finds what the others are about, x86 reads at any address, and the compiler takes a third
    # less time without them.
    add_compile_options(-fno-sanitize=null,vptr,object-size,alignment)
  endif()
endif()
if(BRAID_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link -O1)
  if(CMAKE_CXX_COMPILER_VERSION VERSION_LESS 15)
    # clang 14 cannot compile coroutines with this one ("Cannot represent a difference across sections").
    add_compile_options(-fno-sanitize=function)
  endif()
endif()

add_library(braid_warnings INTERFACE)
target_compile_options(braid_warnings INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion
  $<$<BOOL:${BRAID_WERROR}>:-Werror>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # gcc 12 reports these inside its own headers and Boost's coroutines.
  target_compile_options(braid_warnings INTERFACE -Wno-mismatched-new-delete -Wno-restrict -Wno-array-bounds -Wno-stringop-overflow
    -Wno-stringop-overread
    -Wno-maybe-uninitialized)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_UNITY_BUILD)
  # It takes the sources of a unity build for headers, whose anonymous namespaces would be of many programs' parts.
  target_compile_options(braid_warnings INTERFACE -Wno-subobject-linkage)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND BRAID_SANITIZE MATCHES "thread")
  # Asio's handlers begin with a fence, which TSan does not model; the queue's mutex orders them, and that it sees.
  target_compile_options(braid_warnings INTERFACE -Wno-tsan)
endif()

# What an answer's fingerprint calls the build (app/fingerprint.cpp).
add_link_options(-Wl,--build-id=sha1)
