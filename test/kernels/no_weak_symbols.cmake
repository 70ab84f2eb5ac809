# Fails when an object of a wide instruction set defines a weak symbol: an inline function that other sources may define too. The
# linker keeps one copy, and a machine without that instruction set would run the wide one. Values of template parameters are data and
# the same in all copies.
# Arguments: NM, OBJECTS (all objects of the layer, separated by commas).
string(REPLACE "," ";" objects "${OBJECTS}")
set(checked 0)
foreach(object ${objects})
  if(NOT object MATCHES "[.]dir/([.]/)?(avx2|avx512|amx|neon)/" OR object MATCHES "/(table|select|cpu_features)\\.cpp")
    continue()
  endif()
  execute_process(COMMAND ${NM} -C --defined-only ${object} OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX REPLACE "[^\n]* V template parameter object for [^\n]*" "" symbols "${symbols}")
  string(REGEX MATCHALL "[^\n]* [WVu] [^\n]*" weak "${symbols}")
  if(weak)
    message(SEND_ERROR "${object} defines ${weak}")
  endif()
  math(EXPR checked "${checked} + 1")
endforeach()
if(checked EQUAL 0)
  message(FATAL_ERROR "no tier's object was found")
endif()
