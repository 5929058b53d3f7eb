# Sources, generated registries, libquern (static and shared) and the executable.
set(gen "${PROJECT_BINARY_DIR}/gen")
set(tools "${PROJECT_SOURCE_DIR}/tools")
set(quern_includes "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/include" "${gen}"
    "${gen}/include")

file(GLOB sources CONFIGURE_DEPENDS src/*/*.c src/backend/*/*.c src/plan/models/*.c)
file(GLOB cli_sources CONFIGURE_DEPENDS src/cli/*.c)
file(GLOB isa_sources CONFIGURE_DEPENDS src/backend/cpu/isa/*.c)
list(REMOVE_ITEM sources ${cli_sources} "")
list(FILTER sources EXCLUDE REGEX "/src/backend/cuda/") # a plugin: cmake/Plugins.cmake
set_source_files_properties(src/api/plugin.c PROPERTIES COMPILE_DEFINITIONS
                            "QN_LIBDIR=\"${CMAKE_INSTALL_LIBDIR}\"")
# IEEE arithmetic, the same numbers on every machine, but loops that vectorise.
set_source_files_properties(src/base/normal.c PROPERTIES COMPILE_OPTIONS
                            "${kernel_level};-fno-math-errno;-fno-trapping-math")

# The registries are derived at every build, so that a deleted operator or kernel drops out; the
# tools write only what changed.
set(generated "${gen}/ops/ops_text.c" "${gen}/plan/tables.c")
file(GLOB backends CONFIGURE_DEPENDS LIST_DIRECTORIES true src/backend/*)
set(kernel_commands)
set(kernel_lists)
foreach(backend IN LISTS backends)
    cmake_path(GET backend FILENAME name)
    list(APPEND kernel_commands COMMAND "${tools}/gen_kernels" "${backend}" "${gen}/backend/${name}")
    list(APPEND kernel_lists "${gen}/backend/${name}/kernels_list.h")
endforeach()
add_custom_target(quern_generate
    COMMAND "${tools}/gen_ops" "${PROJECT_SOURCE_DIR}/src/ops" "${gen}"
    COMMAND "${tools}/gen_plan" "${PROJECT_SOURCE_DIR}/plan" "${gen}"
    ${kernel_commands}
    BYPRODUCTS ${generated} "${gen}/ops/tiles.c" ${kernel_lists} "${gen}/ops/ops.h"
        "${gen}/ops/ops_list.h" "${gen}/ops/tiles_list.h" "${gen}/plan/tables.h"
        "${gen}/include/quern/ops.h"
    COMMENT "registries" VERBATIM)

if(quern_onnx_schema)
    set(schema_files "${gen}/io/onnx.pb-c.c" "${gen}/io/onnx.pb-c.h"
        "${gen}/io/onnx_value.pb-c.c" "${gen}/io/onnx_value.pb-c.h")
    cmake_path(GET quern_onnx_schema PARENT_PATH schema_dir)
    set(values "${PROJECT_SOURCE_DIR}/src/io/onnx_value.proto")
    file(MAKE_DIRECTORY "${gen}/io")
    add_custom_command(OUTPUT ${schema_files}
        COMMAND "${QUERN_PROTOC_C}" "--c_out=${gen}/io" "-I${schema_dir}" "${quern_onnx_schema}"
        COMMAND "${QUERN_PROTOC_C}" "--c_out=${gen}/io" "-I${schema_dir}"
            "-I${PROJECT_SOURCE_DIR}/src/io" "${values}"
        DEPENDS "${quern_onnx_schema}" "${values}" COMMENT "ONNX schema" VERBATIM)
    set_source_files_properties("${gen}/io/onnx.pb-c.c" "${gen}/io/onnx_value.pb-c.c"
                                PROPERTIES COMPILE_OPTIONS "-w;-I${gen}/io")
    list(APPEND generated ${schema_files})
endif()

add_library(quern_objects OBJECT ${sources} ${generated})
target_compile_options(quern_objects PRIVATE ${quern_warnings} ${quern_openmp_flags})
target_include_directories(quern_objects PRIVATE ${quern_includes})
add_dependencies(quern_objects quern_generate)

set(quern_isa_targets)
quern_per_isa(isa QN_ISA ${isa_sources})
quern_per_isa(tiles QN_TILE_ISA "${gen}/ops/tiles.c")

set(objects $<TARGET_OBJECTS:quern_objects>)
foreach(target IN LISTS quern_isa_targets)
    list(APPEND objects $<TARGET_OBJECTS:${target}>)
endforeach()

add_library(quern_static STATIC ${objects})
add_library(quern_shared SHARED ${objects})
foreach(target quern_static quern_shared)
    set_target_properties(${target} PROPERTIES OUTPUT_NAME quern LINKER_LANGUAGE C)
    target_include_directories(${target} INTERFACE
        $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<BUILD_INTERFACE:${gen}/include>
        $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endforeach()
target_link_libraries(quern_static PUBLIC ${quern_libs})
target_link_directories(quern_static PUBLIC ${quern_lib_dirs})
target_link_libraries(quern_shared PRIVATE ${quern_libs})
target_link_directories(quern_shared PRIVATE ${quern_lib_dirs})
# An archive such as libxsmm must not put its own symbols into our interface.
target_link_options(quern_shared PRIVATE -Wl,--exclude-libs,ALL)
set_target_properties(quern_shared PROPERTIES VERSION ${PROJECT_VERSION}
                      SOVERSION ${PROJECT_VERSION_MAJOR})
add_library(quern::quern ALIAS quern_shared)
add_library(quern::static ALIAS quern_static)

if(cli_sources)
    add_executable(quern_cli ${cli_sources})
    set_target_properties(quern_cli PROPERTIES OUTPUT_NAME quern)
    target_compile_options(quern_cli PRIVATE ${quern_warnings} ${quern_openmp_flags})
    target_include_directories(quern_cli PRIVATE ${quern_includes})
    target_link_libraries(quern_cli PRIVATE quern_static)
    add_dependencies(quern_cli quern_generate)
endif()
