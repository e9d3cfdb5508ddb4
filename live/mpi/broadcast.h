// The function of libsyncline_mpi.so. This library is loaded if mpirun started the ranks, so that
// the program itself runs on machines without MPI. dlsym finds the function by its C name.
#pragma once

#include <string>

extern "C" {

// Gives rank 0's `text` to every rank. `failure`: the call that failed, and why; else empty.
using SynclineMpiFromFirst = void(std::string& text, std::string& failure);

[[gnu::visibility("default")]] SynclineMpiFromFirst syncline_mpi_from_first;
}
