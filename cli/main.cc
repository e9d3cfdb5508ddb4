#include "cli/verbs.h"

int main(int argc, char** argv) { return syncline::cli::run_program(argc, argv); }
