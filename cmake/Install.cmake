# cmake --install: headers, library, executable, pkg-config file, CMake package, completion.
include(CMakePackageConfigHelpers)
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/quern")

install(DIRECTORY include/quern TYPE INCLUDE FILES_MATCHING PATTERN "*.h")
install(DIRECTORY "${gen}/include/quern" TYPE INCLUDE FILES_MATCHING PATTERN "*.h")
install(TARGETS quern_static quern_shared EXPORT quern)
if(TARGET quern_cli)
    install(TARGETS quern_cli)
endif()
set_target_properties(quern_shared PROPERTIES EXPORT_NAME quern)
set_target_properties(quern_static PROPERTIES EXPORT_NAME static)
install(EXPORT quern FILE quernTargets.cmake NAMESPACE quern:: DESTINATION "${package_dir}")
file(WRITE "${PROJECT_BINARY_DIR}/quernConfig.cmake"
     "include(\"\${CMAKE_CURRENT_LIST_DIR}/quernTargets.cmake\")\n")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/quernConfigVersion.cmake"
                                 COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/quernConfig.cmake"
        "${PROJECT_BINARY_DIR}/quernConfigVersion.cmake" DESTINATION "${package_dir}")

list(TRANSFORM quern_libs PREPEND "-l" OUTPUT_VARIABLE pc_libs)
list(TRANSFORM quern_lib_dirs PREPEND "-L" OUTPUT_VARIABLE pc_dirs)
list(JOIN pc_libs " " pc_libs)
list(JOIN pc_dirs " " pc_dirs)
file(RELATIVE_PATH pc_prefix "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/") # two folders up, or three
configure_file(cmake/quern.pc.in "${PROJECT_BINARY_DIR}/quern.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/quern.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")

install(FILES LICENSE README.md CHANGELOG.md DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(DIRECTORY docs/ DESTINATION "${CMAKE_INSTALL_DOCDIR}/docs" FILES_MATCHING PATTERN "*.md")
install(DIRECTORY examples DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(FILES docs/quern.1 DESTINATION "${CMAKE_INSTALL_MANDIR}/man1")
install(FILES tools/quern.bash RENAME quern
        DESTINATION "${CMAKE_INSTALL_DATADIR}/bash-completion/completions")
file(GLOB recipes CONFIGURE_DEPENDS recipes/*.yaml)
if(recipes)
    install(FILES ${recipes} DESTINATION "${CMAKE_INSTALL_DATADIR}/quern/recipes")
endif()
