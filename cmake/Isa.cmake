# One source, compiled once for each instruction set; the best one is chosen at run time. The
# variants, best first, also reach the code: gen/base/isa_list.h.
include(CheckCCompilerFlag)
set(quern_isas)

function(quern_isa name)
    string(REPLACE ";" " " flags "${ARGN}")
    string(MAKE_C_IDENTIFIER "QUERN_HAS_ISA_${name}" has)
    if(ARGN)
        check_c_compiler_flag("${flags}" ${has})
    else()
        set(${has} ON)
    endif()
    if(${has})
        set(quern_isas ${quern_isas} ${name} PARENT_SCOPE)
        set(quern_isa_flags_${name} ${ARGN} PARENT_SCOPE)
    endif()
endfunction()

if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
    quern_isa(v4 -march=x86-64-v4 -mavx512vnni -mavx512bf16 -mprefer-vector-width=512)
    quern_isa(v3 -march=x86-64-v3)
    quern_isa(v2 -march=x86-64-v2)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
    quern_isa(neon)
else()
    quern_isa(generic)
endif()

list(TRANSFORM quern_isas REPLACE "(.+)" "X(\\1)" OUTPUT_VARIABLE isa_items)
list(JOIN isa_items " " isa_items)
file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/gen/base/isa_list.h" @ONLY CONTENT
"/* Generated: the instruction sets that kernels were compiled for, best first. */
#ifndef QN_BASE_ISA_LIST_H
#define QN_BASE_ISA_LIST_H
#define QN_ISA_LIST(X) @isa_items@
#endif
")

# quern_per_isa(<prefix> <macro> <source>...): adds an object library for each instruction set with
# -D<macro>=<isa>, and their names to quern_isa_targets.
function(quern_per_isa prefix macro)
    if(NOT ARGN)
        return()
    endif()
    foreach(isa IN LISTS quern_isas)
        set(target quern_${prefix}_${isa})
        add_library(${target} OBJECT ${ARGN})
        target_compile_definitions(${target} PRIVATE ${macro}=${isa})
        target_compile_options(${target} PRIVATE ${quern_warnings} ${quern_openmp_flags}
                               ${quern_kernel_flags} ${quern_isa_flags_${isa}})
        target_include_directories(${target} PRIVATE ${quern_includes})
        add_dependencies(${target} quern_generate)
        list(APPEND quern_isa_targets ${target})
    endforeach()
    set(quern_isa_targets ${quern_isa_targets} PARENT_SCOPE)
endfunction()
