// The function of libsyncline_mpi.so. This library is loaded if mpirun started the ranks, so that
// the program itself runs on machines without MPI. It has plain types, as it is found by its name.
#pragma once

#include <string>

extern "C" {

// Gives rank 0's `text` to every rank. `failure`: the call that failed, and why; else empty.
using SynclineMpiFromFirst = void(std::string& text, std::string& failure);

[[gnu::visibility("default")]] SynclineMpiFromFirst syncline_mpi_from_first;
}
