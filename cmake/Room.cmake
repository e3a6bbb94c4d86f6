# A room of the house: one static library per folder of src/. Each room has an include root of its own, cmake/rooms/ROOM,
# that holds a link to its folder alone, so that `#include "ROOM/file.h"` compiles only where the room was linked.
set(H3RENDER_WARNINGS -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion -Werror)
# Psabi notes speak about vector types in signatures, which only internal functions have. GCC 12 and 13 see phantom
# out-of-bounds accesses in inlined standard containers; those two stay warnings.
set(H3RENDER_CXX_FLAGS ${H3RENDER_WARNINGS} -ffp-contract=off -Wno-psabi -Wno-error=array-bounds
                       -Wno-error=stringop-overflow -Wno-error=maybe-uninitialized)
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  list(APPEND H3RENDER_CXX_FLAGS -O3)
endif()
if(H3RENDER_CPU_ARCH)
  list(APPEND H3RENDER_CXX_FLAGS -march=${H3RENDER_CPU_ARCH})
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  list(APPEND H3RENDER_CXX_FLAGS -march=x86-64-v3)
endif()
if(H3RENDER_SANITIZE)
  list(APPEND H3RENDER_CXX_FLAGS -fsanitize=${H3RENDER_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${H3RENDER_SANITIZE})
endif()

# h3_room(NAME SOURCES ... ROOMS below it ... LIBRARIES from outside ...)
function(h3_room name)
  cmake_parse_arguments(ARG "" "" "SOURCES;ROOMS;LIBRARIES" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  set_target_properties(${name} PROPERTIES OUTPUT_NAME h3_${name})
  target_include_directories(${name} PUBLIC ${CMAKE_SOURCE_DIR}/cmake/rooms/${name})
  target_compile_options(${name} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${H3RENDER_CXX_FLAGS}>")
  target_link_libraries(${name} PUBLIC ${ARG_ROOMS} ${ARG_LIBRARIES})
endfunction()

# h3_test(NAME SOURCES ... ROOMS ...): one GoogleTest program of the tests folder, labelled `unit`.
function(h3_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;ROOMS;LIBRARIES" ${ARGN})
  add_executable(test_${name} ${ARG_SOURCES})
  target_compile_options(test_${name} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${H3RENDER_CXX_FLAGS}>")
  target_compile_definitions(test_${name} PRIVATE H3RENDER_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  target_link_libraries(test_${name} PRIVATE test_support ${ARG_ROOMS} ${ARG_LIBRARIES} GTest::gtest GTest::gtest_main)
  add_test(NAME ${name} COMMAND test_${name})
  set_tests_properties(${name} PROPERTIES LABELS unit)
endfunction()

# h3_mpi_test(NAME PROGRAM RANKS): a program of the tests under a real mpirun, labelled `mpi`.
function(h3_mpi_test name program ranks)
  add_test(NAME ${name}_n${ranks}
           COMMAND ${MPIEXEC_EXECUTABLE} --allow-run-as-root --oversubscribe --bind-to none -n ${ranks}
                   $<TARGET_FILE:${program}> ${ARGN})
  set_tests_properties(${name}_n${ranks} PROPERTIES LABELS mpi ENVIRONMENT "OMP_NUM_THREADS=1" TIMEOUT 300)
endfunction()
