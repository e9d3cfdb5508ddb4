// Hands in every framework ahead of main, for programs of tests: their main is not ours.
#include "formats/dialect/dialects.h"

namespace {

const bool handed_in = [] {
  syncline::dialect::hand_in(syncline::dialect::all_dialects());
  return true;
}();

}  // namespace
