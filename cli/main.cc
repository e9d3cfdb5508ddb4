#include "cli/handed_in.h"
#include "cli/process.h"
#include "cli/verbs.h"

int main(int argc, char** argv) {
  syncline::cli::prepare_process();
  syncline::cli::hand_in_all();
  return syncline::cli::run_program(argc, argv);
}
