# Rooms: one library a folder, which sees its own headers and those of the rooms that it is linked
# to, and no others. Each room gives out an include folder that holds a link to it alone, so an
# include that points upstairs does not compile.

get_filename_component(SYNCLINE_ROOT ${CMAKE_CURRENT_LIST_DIR} DIRECTORY)

# A library of a room can also be linked into a shared one (python/), and modules find its functions
# in the program.
function(syncline_linked_anywhere)
  set_target_properties(${ARGN} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  foreach(target ${ARGN})
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fno-semantic-interposition>)
  endforeach()
endfunction()

# Makes `program` one that loads modules: it has all of the rooms that `top` is linked to, called by it
# or not, and gives them to its modules.
function(syncline_program_of_modules program top)
  set(rooms "")
  set(left ${top})
  while(left)
    list(POP_FRONT left room)
    if(room IN_LIST rooms OR NOT TARGET "${room}" OR NOT room MATCHES "^syncline_")
      continue()
    endif()
    get_target_property(kind ${room} TYPE)
    if(kind STREQUAL "STATIC_LIBRARY")
      list(APPEND rooms ${room})
    endif()
    get_target_property(links ${room} INTERFACE_LINK_LIBRARIES)
    if(links)
      list(APPEND left ${links})
    endif()
  endwhile()
  list(JOIN rooms "," overridden)
  set_target_properties(${program} PROPERTIES ENABLE_EXPORTS ON
                                              LINK_LIBRARY_OVERRIDE "WHOLE_ARCHIVE,${overridden}")
  add_custom_target(syncline_modules ALL)
  # All modules as libraries, for programs of tests.
  add_library(syncline_linked_modules INTERFACE)
  target_link_libraries(syncline_linked_modules INTERFACE ${top})
endfunction()

# syncline_module(NAME ROOMS room... [LIBRARIES library...])
#   libsyncline_NAME.so beside the program: cli/modules/NAME.cc, which gives out the module's rows, and
#   the rooms that the program itself has not. Whatever else it calls is the program's.
function(syncline_module name)
  cmake_parse_arguments(MODULE "" "" "ROOMS;LIBRARIES" ${ARGN})
  list(TRANSFORM MODULE_ROOMS PREPEND syncline_)
  list(GET MODULE_ROOMS 0 first)
  set(module syncline_${name}_module)
  add_library(${module}_rows OBJECT ${SYNCLINE_ROOT}/cli/modules/${name}.cc)
  syncline_linked_anywhere(${module}_rows)
  target_link_libraries(${module}_rows PRIVATE syncline_cli ${first})
  add_library(${module} MODULE $<TARGET_OBJECTS:${module}_rows>)
  set_target_properties(${module} PROPERTIES OUTPUT_NAME syncline_${name} LINKER_LANGUAGE CXX)
  foreach(room ${MODULE_ROOMS})
    target_link_libraries(${module} PRIVATE $<TARGET_FILE:${room}>)
    add_dependencies(${module} ${room})
  endforeach()
  target_link_libraries(${module} PRIVATE syncline_flags syncline ${MODULE_LIBRARIES})
  set_property(TARGET ${module} APPEND PROPERTY LINK_DEPENDS "$<TARGET_FILE:syncline>")
  add_dependencies(syncline_modules ${module})
  add_library(${module}_linked STATIC $<TARGET_OBJECTS:${module}_rows>)
  set_target_properties(${module}_linked PROPERTIES EXCLUDE_FROM_ALL ON LINKER_LANGUAGE CXX)
  target_link_libraries(${module}_linked PUBLIC ${MODULE_ROOMS} syncline_cli)
  target_link_libraries(syncline_linked_modules INTERFACE ${module}_linked)
  set_property(GLOBAL APPEND PROPERTY SYNCLINE_MODULES ${module})
endfunction()

# syncline_room(NAME FOLDER SOURCES file... [HEADERS file...] [LINKS room...]
#               [PRIVATE_LINKS library...]
#               [PRECOMPILE header...] [COLD] [TOGETHER] [ALONE file...])
#   NAME      the library is called syncline_NAME
#   FOLDER    from the top of the project; the sources' names count from there
#   HEADERS   of the folder above, which this room gives out too
#   COLD      runs once a question, not once a row: -O1 compiles it in three quarters of the time
#   TOGETHER  the sources of a folder are compiled several at a time, since what each includes takes
#             longer than what it says: names of their own must not clash (SYNCLINE_TOGETHER)
#   ALONE     but for these, rows of a table whose functions have the same names
function(syncline_room name folder)
  cmake_parse_arguments(ROOM "COLD;TOGETHER" "" "SOURCES;HEADERS;LINKS;PRIVATE_LINKS;PRECOMPILE;ALONE" ${ARGN})
  list(TRANSFORM ROOM_SOURCES PREPEND ${SYNCLINE_ROOT}/${folder}/)
  add_library(syncline_${name} STATIC ${ROOM_SOURCES})
  syncline_linked_anywhere(syncline_${name})
  if(folder MATCHES "^(core|catalogue|formats|studies|imports)(/|$)" AND NOT name STREQUAL sim)
    set_property(GLOBAL APPEND PROPERTY SYNCLINE_ARCHIVED ${name})
  endif()
  set(view ${PROJECT_BINARY_DIR}/rooms/${name})
  get_filename_component(parent ${view}/${folder} DIRECTORY)
  file(MAKE_DIRECTORY ${parent})
  file(CREATE_LINK ${SYNCLINE_ROOT}/${folder} ${view}/${folder} SYMBOLIC)
  foreach(header ${ROOM_HEADERS})
    file(CREATE_LINK ${SYNCLINE_ROOT}/${folder}/../${header} ${parent}/${header} SYMBOLIC)
  endforeach()
  target_include_directories(syncline_${name} PUBLIC ${view})
  list(TRANSFORM ROOM_LINKS REPLACE "^([a-z_]+)$" "syncline_\\1")
  target_link_libraries(syncline_${name} PUBLIC syncline_flags ${ROOM_LINKS}
                                         PRIVATE ${ROOM_PRIVATE_LINKS})
  set(precompiled syncline_precompiled)
  if(ROOM_COLD)
    set(precompiled syncline_precompiled_cold)
    target_compile_options(syncline_${name} PRIVATE ${COLD})
  endif()
  if(SYNCLINE_PCH AND ROOM_PRECOMPILE)
    # Options of its own: nothing precompiled for the others fits.
    target_precompile_headers(syncline_${name} PRIVATE ${PRECOMPILED} ${ROOM_PRECOMPILE})
  elseif(SYNCLINE_PCH)
    target_precompile_headers(syncline_${name} REUSE_FROM ${precompiled})
  endif()
  if(ROOM_TOGETHER)
    if(ROOM_ALONE)
      list(TRANSFORM ROOM_ALONE PREPEND ${SYNCLINE_ROOT}/${folder}/)
      list(REMOVE_ITEM ROOM_SOURCES ${ROOM_ALONE})
    endif()
    syncline_together(syncline_${name} 8 ${ROOM_SOURCES})
  endif()
endfunction()

# The sources of a folder, in one target, are compiled so many at a time (SYNCLINE_TOGETHER).
function(syncline_together target size)
  if(NOT SYNCLINE_TOGETHER)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  set(last "")
  foreach(source ${ARGN})
    get_filename_component(place ${source} DIRECTORY)
    if(NOT place STREQUAL last)
      set(last ${place})
      set(count 0)
    endif()
    math(EXPR batch "${count} / ${size}")
    math(EXPR count "${count} + 1")
    get_filename_component(place ${place} NAME)
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${place}_${batch})
  endforeach()
endfunction()
