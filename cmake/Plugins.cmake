# Backends that are shared objects of their own (src/rt/plugin.h), found by the program at run time.
# They are compiled against headers alone: all of NVIDIA's libraries come by dlopen.
set(QUERN_WITH_CUDA AUTO CACHE STRING "the plugin for CUDA devices: AUTO, ON or OFF")
set_property(CACHE QUERN_WITH_CUDA PROPERTY STRINGS AUTO ON OFF)

set(quern_cuda_include)
if((QUERN_WITH_CUDA STREQUAL "AUTO" OR QUERN_WITH_CUDA) AND NOT CMAKE_CROSSCOMPILING)
    find_path(QUERN_CUDA_INCLUDE nvrtc.h
              HINTS $ENV{CUDA_HOME}/include $ENV{CUDA_PATH}/include
              PATHS /usr/local/cuda/include /opt/cuda/include)
    mark_as_advanced(QUERN_CUDA_INCLUDE)
    set(version 0)
    if(QUERN_CUDA_INCLUDE AND EXISTS "${QUERN_CUDA_INCLUDE}/cuda.h"
       AND EXISTS "${QUERN_CUDA_INCLUDE}/cublasLt.h")
        file(STRINGS "${QUERN_CUDA_INCLUDE}/cuda.h" line REGEX "^#define CUDA_VERSION [0-9]+")
        string(REGEX REPLACE ".* ([0-9]+).*" "\\1" version "${line}")
    endif()
    if(version GREATER_EQUAL 12000)
        set(quern_cuda_include "${QUERN_CUDA_INCLUDE}")
    elseif(QUERN_WITH_CUDA STREQUAL "AUTO")
        message(STATUS "without CUDA's headers (cuda.h, nvrtc.h, cublasLt.h of CUDA 12 or newer)")
    else()
        message(FATAL_ERROR "QUERN_WITH_CUDA is ON, but cuda.h, nvrtc.h and cublasLt.h of CUDA 12 or "
                            "newer are not found: set QUERN_CUDA_INCLUDE to their folder")
    endif()
endif()
if(NOT quern_cuda_include)
    return()
endif()
message(STATUS "plugins: CUDA (${quern_cuda_include})")

file(GLOB cuda_sources CONFIGURE_DEPENDS src/backend/cuda/*.c)
add_library(quern_cuda MODULE ${cuda_sources})
set_target_properties(quern_cuda PROPERTIES PREFIX "lib" LIBRARY_OUTPUT_DIRECTORY
                                                         "${PROJECT_BINARY_DIR}")
target_compile_options(quern_cuda PRIVATE ${quern_warnings})
target_include_directories(quern_cuda PRIVATE ${quern_includes})
target_include_directories(quern_cuda SYSTEM PRIVATE "${quern_cuda_include}")
target_link_libraries(quern_cuda PRIVATE ${CMAKE_DL_LIBS})
if(NOT QUERN_SANITIZE) # whose functions come from the program
    target_link_options(quern_cuda PRIVATE -Wl,-z,defs)
endif()
add_dependencies(quern_cuda quern_generate)
if(TARGET quern_cli)
    add_dependencies(quern_cli quern_cuda) # found beside it
endif()
install(TARGETS quern_cuda LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}/quern")
