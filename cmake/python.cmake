# syncline for Python (docs/python.md), where pybind11 and Python's headers are: BUILD/python is what
# PYTHONPATH takes. The system's own Python, to which the Debian package belongs; another by
# -DPython_EXECUTABLE=PATH.
if(SYNCLINE_SANITIZE OR SYNCLINE_SANITIZE_THREADS OR SYNCLINE_FUZZ)
  return()  # an interpreter without sanitizers cannot load it
endif()
if(NOT Python_EXECUTABLE AND EXISTS /usr/bin/python3)
  set(Python_EXECUTABLE /usr/bin/python3)
endif()
find_package(Python 3.9 QUIET COMPONENTS Interpreter Development.Module)
if(Python_FOUND)
  set(PYBIND11_FINDPYTHON ON)
  find_package(pybind11 2.10 QUIET)
endif()
if(NOT pybind11_FOUND)
  message(STATUS "Python: left out, it takes pybind11-dev and python3-dev; everything else is built")
  return()
endif()
message(STATUS "Python: ${Python_VERSION}")

syncline_room(python python SOURCES verbs.cc LINKS sim imported COLD)
target_compile_definitions(syncline_python PRIVATE SYNCLINE_VERSION="${PROJECT_VERSION}")

set(PYTHON_PACKAGE ${PROJECT_BINARY_DIR}/python/syncline)
pybind11_add_module(syncline_module MODULE NO_EXTRAS python/module.cc)
set_target_properties(syncline_module PROPERTIES OUTPUT_NAME _core
                                                 LIBRARY_OUTPUT_DIRECTORY ${PYTHON_PACKAGE})
target_link_libraries(syncline_module PRIVATE syncline_python)
# Another module of the process may have functions of the same names.
target_link_options(syncline_module PRIVATE LINKER:--exclude-libs,ALL)
file(MAKE_DIRECTORY ${PYTHON_PACKAGE})
foreach(file python/syncline/__init__.py pytorch/syncline_record.py pytorch/syncline_apply.py
             pytorch/syncline_tuner.py)
  get_filename_component(name ${file} NAME)
  string(REPLACE syncline_ "" name ${name})
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/${file} ${PYTHON_PACKAGE}/${name} SYMBOLIC)
endforeach()
