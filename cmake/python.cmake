# syncline for Python (docs/python.md), where Python's headers are: BUILD/python is what PYTHONPATH
# takes. Those of the system's own Python, which runs the tests; another's by
# -DPython_EXECUTABLE=PATH.
if(SYNCLINE_SANITIZE OR SYNCLINE_SANITIZE_THREADS OR SYNCLINE_FUZZ)
  return()  # an interpreter without sanitizers cannot load it
endif()
if(NOT Python_EXECUTABLE AND EXISTS /usr/bin/python3)
  set(Python_EXECUTABLE /usr/bin/python3)
endif()
find_package(Python 3.9 QUIET COMPONENTS Interpreter Development.Module)
if(NOT Python_FOUND)
  if(SKBUILD)
    message(FATAL_ERROR "A wheel needs Python's headers: apt-get install python3-dev")
  endif()
  message(STATUS "Python: left out, it takes python3-dev; everything else is built")
  return()
endif()
message(STATUS "Python: ${Python_VERSION}")

syncline_room(python python SOURCES verbs.cc LINKS sim imported COLD)
target_compile_definitions(syncline_python PRIVATE SYNCLINE_VERSION="${PROJECT_VERSION}")

set(PYTHON_PACKAGE ${PROJECT_BINARY_DIR}/python/syncline)
Python_add_library(syncline_module MODULE python/module.cc)
set_target_properties(
  syncline_module PROPERTIES OUTPUT_NAME _core PREFIX "" SUFFIX .abi3.so CXX_VISIBILITY_PRESET hidden
                             LIBRARY_OUTPUT_DIRECTORY ${PYTHON_PACKAGE})
target_compile_definitions(syncline_module PRIVATE Py_LIMITED_API=0x03090000)
target_link_libraries(syncline_module PRIVATE syncline_python)
# Another module of the process may have functions of the same names.
target_link_options(syncline_module PRIVATE LINKER:--exclude-libs,ALL)
file(MAKE_DIRECTORY ${PYTHON_PACKAGE})
# Of earlier sources, for one Python alone, which would load it first.
file(GLOB of_one_python ${PYTHON_PACKAGE}/_core.cpython-*.so)
if(of_one_python)
  file(REMOVE ${of_one_python})
endif()
foreach(file python/syncline/__init__.py pytorch/syncline_record.py pytorch/syncline_apply.py
             pytorch/syncline_tuner.py)
  get_filename_component(name ${file} NAME)
  string(REPLACE syncline_ "" name ${name})
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/${file} ${PYTHON_PACKAGE}/${name} SYMBOLIC)
endforeach()
