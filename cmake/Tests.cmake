# Every test/**/test_*.c is one executable and every test/**/test_*.sh one script, found by name.
# A line "labels: a b" or "timeout: seconds" in a test's first comment says more about it; the
# folder is always a label. "pocl: OPTION" is for PoCL's compiler: a test of what texts compute needs
# no optimised code, whose making takes most of its time.
set(QUERN_TEST_TIMEOUT 120 CACHE STRING "seconds that a test may take unless it says otherwise")

find_path(CMOCKA_INCLUDE cmocka.h)
find_library(CMOCKA_LIBRARY cmocka)
mark_as_advanced(CMOCKA_INCLUDE CMOCKA_LIBRARY)
set(cmocka_include "${CMOCKA_INCLUDE}")
set(cmocka_library "${CMOCKA_LIBRARY}")
if(NOT CMOCKA_INCLUDE OR NOT CMOCKA_LIBRARY)
    message(STATUS "without cmocka (Debian package libcmocka-dev): test/fallback stands in for it")
    set(cmocka_include "${PROJECT_SOURCE_DIR}/test/fallback")
    set(cmocka_library)
endif()

# There are hundreds of executables to link, which lld and gold do in less than half of ld's time.
include(CheckLinkerFlag)
set(quern_test_linker)
foreach(linker gold lld)
    check_linker_flag(C -fuse-ld=${linker} QUERN_LINKS_WITH_${linker})
    if(QUERN_LINKS_WITH_${linker})
        set(quern_test_linker -fuse-ld=${linker})
    endif()
endforeach()

function(quern_test_properties name source)
    cmake_path(GET source PARENT_PATH folder)
    cmake_path(GET folder FILENAME labels)
    set(timeout ${QUERN_TEST_TIMEOUT})
    file(STRINGS "${source}" head LIMIT_COUNT 12)
    set(environment "GOMP_SPINCOUNT=2000;XDG_CACHE_HOME=${PROJECT_BINARY_DIR}/test-cache")
    if(head MATCHES "pocl: ([a-z-]+)")
        list(APPEND environment "POCL_EXTRA_BUILD_FLAGS=${CMAKE_MATCH_1}")
    endif()
    if(head MATCHES "labels: ([a-z0-9 -]+)")
        separate_arguments(more UNIX_COMMAND "${CMAKE_MATCH_1}")
        list(APPEND labels ${more})
    endif()
    if(head MATCHES "timeout: ([0-9]+)")
        set(timeout ${CMAKE_MATCH_1})
    endif()
    if(QUERN_SANITIZE)
        math(EXPR timeout "${timeout} * 5")
    endif()
    # Those that may take long start first, so that none of them is left alone at the end.
    set_tests_properties(${name} PROPERTIES LABELS "${labels}" TIMEOUT ${timeout} COST ${timeout}
                         SKIP_RETURN_CODE 77 WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}"
                         # tests run beside each other: see src/cli/main.c; what they cache is not
                         # the user's
                         ENVIRONMENT "${environment}")
endfunction()

function(quern_c_test source)
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY "${PROJECT_SOURCE_DIR}/test" OUTPUT_VARIABLE rel)
    string(REGEX REPLACE "\\.c$" "" rel "${rel}")
    string(REPLACE "/test_" "." name "${rel}")
    string(REPLACE "/" "." name "${name}")
    set(main "${gen}/test/${rel}_main.c")
    add_custom_command(OUTPUT "${main}"
        COMMAND "${tools}/gen_tests" "${source}" "${name}" "${main}"
        DEPENDS "${source}" "${tools}/gen_tests" VERBATIM)
    set(target "test_${name}")
    add_executable(${target} "${main}")
    set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/test")
    # cmocka hands every test a state that few use, and its macros convert between signs. Vectors in
    # tests gain nothing, and gcc 12 for aarch64 fails on some of them (vect_transform_reduction).
    target_compile_options(${target} PRIVATE ${quern_warnings} ${quern_openmp_flags}
                           -Wno-unused-parameter -Wno-sign-conversion -Wno-missing-prototypes
                           -fno-tree-vectorize)
    target_include_directories(${target} PRIVATE ${quern_includes} "${PROJECT_SOURCE_DIR}/test")
    target_include_directories(${target} SYSTEM PRIVATE ${cmocka_include})
    target_link_libraries(${target} PRIVATE quern_static ${cmocka_library})
    target_link_options(${target} PRIVATE ${quern_test_linker})
    add_dependencies(${target} quern_generate)
    if(name MATCHES "^cuda\\." AND TARGET quern_cuda)
        add_dependencies(${target} quern_cuda quern_cuda_stub)
    endif()
    add_test(NAME ${name} COMMAND ${target})
    quern_test_properties(${name} "${source}")
endfunction()

# A script gets the source and the build folder, and exits 77 to say that it skips.
function(quern_shell_test source)
    cmake_path(RELATIVE_PATH source BASE_DIRECTORY "${PROJECT_SOURCE_DIR}/test" OUTPUT_VARIABLE rel)
    string(REGEX REPLACE "\\.sh$" "" rel "${rel}")
    string(REPLACE "/test_" "." name "${rel}")
    string(REPLACE "/" "." name "${name}")
    if(CMAKE_CROSSCOMPILING)
        return() # scripts test the tools and the installed tree of this machine
    endif()
    add_test(NAME ${name} COMMAND sh "${source}" "${PROJECT_SOURCE_DIR}" "${PROJECT_BINARY_DIR}")
    quern_test_properties(${name} "${source}")
endfunction()

file(GLOB_RECURSE test_sources CONFIGURE_DEPENDS test/test_*.c)
file(GLOB_RECURSE test_scripts CONFIGURE_DEPENDS test/test_*.sh)
foreach(source IN LISTS test_sources)
    quern_c_test("${source}")
endforeach()
foreach(source IN LISTS test_scripts)
    quern_shell_test("${source}")
endforeach()

# What the test of parity measures is a page of the documents: their test takes it from there.
set_property(TEST ops.parity APPEND PROPERTY ENVIRONMENT "QN_PARITY=${PROJECT_BINARY_DIR}/parity.md")
if(NOT CMAKE_CROSSCOMPILING)
    set_property(TEST tools.docs PROPERTY DEPENDS ops.parity)
endif()

# A driver for tests of the CUDA plugin, with host memory behind it.
if(TARGET quern_cuda)
    file(GLOB stub_sources CONFIGURE_DEPENDS test/cuda/stub/*.c)
    add_library(quern_cuda_stub MODULE ${stub_sources} src/base/float8.c)
    set_target_properties(quern_cuda_stub PROPERTIES OUTPUT_NAME cuda_stub
                          LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/test")
    target_compile_options(quern_cuda_stub PRIVATE ${quern_warnings} -Wno-missing-prototypes)
    target_include_directories(quern_cuda_stub PRIVATE "${PROJECT_SOURCE_DIR}/test"
                               "${PROJECT_SOURCE_DIR}/src")
    target_compile_definitions(quern_cuda_stub PRIVATE "STUB_SOURCES=\"${PROJECT_SOURCE_DIR}/src\"")
    target_include_directories(quern_cuda_stub SYSTEM PRIVATE "${quern_cuda_include}")
    target_link_libraries(quern_cuda_stub PRIVATE ${CMAKE_DL_LIBS})
endif()

# Plugins that the program must refuse, each in a folder of its own.
foreach(fault ABI BYTES STRUCT NAME)
    add_library(quern_bad_${fault} MODULE test/cuda/bad/plugin.c)
    set_target_properties(quern_bad_${fault} PROPERTIES OUTPUT_NAME quern_cuda
                          LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/test/bad_${fault}")
    target_compile_definitions(quern_bad_${fault} PRIVATE BAD_${fault})
    target_include_directories(quern_bad_${fault} PRIVATE ${quern_includes})
    add_dependencies(quern_bad_${fault} quern_generate)
    add_dependencies(test_api.plugin quern_bad_${fault})
endforeach()
