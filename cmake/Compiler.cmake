# Language, warnings, optimisation and sanitizers: what every target is compiled with.
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
endif()
# -g1 keeps lines in backtraces and profiles; full debug information triples the build's output.
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g1 -DNDEBUG")

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
add_compile_definitions(_GNU_SOURCE)
add_compile_options(-ffp-contract=off) # clang's default differs from gcc's; kernels turn it on

set(quern_warnings -Wall -Wextra -Wconversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes
    -Wvla -Wundef
    -Wno-missing-field-initializers) # a field left out of a table is zero, as meant

if(CMAKE_C_COMPILER_ID MATCHES "Clang")
    list(APPEND quern_warnings -Wno-pass-failed) # a loop that cannot be vectorised is no mistake
endif()

set(werror ${QUERN_WERROR})
if(werror STREQUAL "AUTO")
    set(werror OFF)
    string(REGEX REPLACE "\\..*" "" major "${CMAKE_C_COMPILER_VERSION}")
    if(PROJECT_IS_TOP_LEVEL
       AND "${CMAKE_C_COMPILER_ID}-${major}" MATCHES "^(GNU-12|Clang-14)$")
        set(werror ON)
    endif()
    if(QUERN_SANITIZE AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
        set(werror OFF) # instrumented code makes gcc warn of what cannot happen
    endif()
endif()
if(werror)
    list(APPEND quern_warnings -Werror)
endif()

if(QUERN_SANITIZE)
    # Reports need lines alone, as above.
    add_compile_options(-fsanitize=${QUERN_SANITIZE} -fno-omit-frame-pointer -g1)
    add_link_options(-fsanitize=${QUERN_SANITIZE})
    if(QUERN_SANITIZE MATCHES "undefined")
        add_compile_options(-fno-sanitize-recover=undefined)
        add_link_options(-fno-sanitize-recover=undefined)
    endif()
endif()

# Arithmetic that vectorises. Only for kernels: everything else keeps strict IEEE semantics. Under
# sanitizers gcc takes five times as long at -O3 as at -O1, for loops whose checks remain.
set(kernel_level -O3)
if(QUERN_SANITIZE)
    set(kernel_level -O1)
endif()
set(quern_kernel_flags ${kernel_level} -fno-math-errno -fno-trapping-math -fno-signed-zeros -ffp-contract=fast)
