# What the program is made of, for `syncline --version`: SOURCE_COMMIT, BACKEND_FACTS.

# A source archive (git archive) has its commit in a file; a clone asks git, anew after each commit.
file(STRINGS cmake/commit.txt SOURCE_COMMIT LIMIT_COUNT 1)
if(SOURCE_COMMIT MATCHES "^.Format")
  execute_process(
    COMMAND git -C ${PROJECT_SOURCE_DIR} describe --always --exclude=* --abbrev=12 --dirty=-changed
    OUTPUT_VARIABLE SOURCE_COMMIT
    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  set(commits ${PROJECT_SOURCE_DIR}/.git/logs/HEAD)
  if(EXISTS ${commits})
    set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${commits})
  endif()
endif()
if(NOT SOURCE_COMMIT)
  set(SOURCE_COMMIT "not known")
endif()

set(BACKEND_FACTS "")
if(GLOO_LIBRARY AND GLOO_INCLUDE)
  list(APPEND BACKEND_FACTS "gloo")
endif()
if(NCCL_SOURCES AND NCCL_LIBRARY AND TARGET syncline_kernels)
  list(APPEND BACKEND_FACTS "nccl by CUDA ${CUDAToolkit_VERSION}")
endif()
if(MPI_CXX_FOUND)
  list(APPEND BACKEND_FACTS "ranks from mpirun by MPI ${MPI_CXX_VERSION}")
endif()
if(NOT BACKEND_FACTS)
  set(BACKEND_FACTS "none")
endif()
list(JOIN BACKEND_FACTS ", " BACKEND_FACTS)
