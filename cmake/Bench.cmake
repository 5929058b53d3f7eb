# Benchmarks, not run by the tests: quern_bench_kernels times every kernel of the CPU,
# quern_bench_rows one row of the table that ./do bench prints.
file(GLOB bench_sources CONFIGURE_DEPENDS bench/*.c)
foreach(source IN LISTS bench_sources)
    cmake_path(GET source STEM stem)
    file(GLOB parts CONFIGURE_DEPENDS "bench/${stem}/*.c")
    add_executable(quern_bench_${stem} "${source}" ${parts} src/cli/spinning.c)
    set_target_properties(quern_bench_${stem} PROPERTIES
                          RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bench")
    target_compile_options(quern_bench_${stem} PRIVATE ${quern_warnings} ${quern_openmp_flags})
    target_include_directories(quern_bench_${stem} PRIVATE ${quern_includes})
    target_link_libraries(quern_bench_${stem} PRIVATE quern_static)
    add_dependencies(quern_bench_${stem} quern_generate)
endforeach()
