# find_package(ott REQUIRED); target_link_libraries(train PRIVATE ott::ott)

include(CMakeFindDependencyMacro)
find_dependency(absl)
find_dependency(Protobuf)

if(NOT TARGET ott::ott)
  get_filename_component(_ott_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
  add_library(ott::ott SHARED IMPORTED)
  set_target_properties(ott::ott PROPERTIES
    IMPORTED_LOCATION "${_ott_prefix}/lib/libott.so"
    INTERFACE_COMPILE_FEATURES cxx_std_17
    INTERFACE_INCLUDE_DIRECTORIES "${_ott_prefix}/include"
    INTERFACE_LINK_LIBRARIES
      "absl::flat_hash_map;absl::span;absl::status;absl::statusor;absl::strings;absl::time;protobuf::libprotobuf")
  unset(_ott_prefix)
endif()
