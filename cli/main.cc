#include "cli/process.h"
#include "cli/verbs.h"

int main(int argc, char** argv) {
  syncline::cli::prepare_process();
  return syncline::cli::run_program(argc, argv);
}
