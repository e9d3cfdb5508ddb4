#include "cli/verbs.h"

int main(int argc, char** argv) { return syncline::run_program(argc, argv); }
