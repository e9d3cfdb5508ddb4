// What libsyncline_mpi.so gives: a library of its own, loaded where mpirun started the ranks, so
// that the program itself runs on machines that have no MPI. In plain types: it is found by its
// name.
#pragma once

#include <string>

extern "C" {

// Rank 0's `text` on every rank; `failure` says which call failed and why, and is empty otherwise.
using SynclineMpiFromFirst = void(std::string& text, std::string& failure);

[[gnu::visibility("default")]] SynclineMpiFromFirst syncline_mpi_from_first;
}
