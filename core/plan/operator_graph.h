// An operator list as a graph that can be rewritten: the writer and the readers of a value, and the
// fusion of two operators into one.
#pragma once

#include <string>
#include <vector>

#include "core/base/index.h"
#include "core/job.h"

namespace syncline::plan {

class OperatorGraph {
 public:
  explicit OperatorGraph(const OperatorList& list);

  int size() const { return static_cast<int>(list_.operators.size()); }
  // Returns an operator; its kind is empty once it was folded into another one.
  const Operator& at(int op) const { return list_.operators[index(op)]; }
  bool is(int op, const std::string& kind) const { return op >= 0 && at(op).kind == kind; }
  const Value& value(int id) const { return list_.values[index(id)]; }

  int writer(int value) const { return writers_[index(value)]; }  // or -1
  const std::vector<int>& readers(int value) const { return readers_[index(value)]; }
  // Returns the single operator that reads the value, or -1 for none or several.
  int only_reader(int value) const;
  bool reads(int op, int value) const;

  // Folds `first` into `second`, which reads its `value`. One kernel does the work of both; each
  // pass over `value` becomes one over the inputs of `first`. `value` itself is written only if
  // other operators read it. The result replaces `second` and is called `kind`.
  void fold(int first, int second, int value, const std::string& kind);

  // Folds any number of independent operators into the first of them.
  void join(const std::vector<int>& ops, const std::string& kind);

  void replace_input(int op, int old_value, int new_value);

  // Returns the remaining operators, each after those that write its inputs, otherwise in order.
  OperatorList finish() &&;

 private:
  Operator& edit(int op) { return list_.operators[index(op)]; }
  void forget_reader(int value, int op);

  OperatorList list_;
  std::vector<int> writers_;
  std::vector<std::vector<int>> readers_;
};

// An edge that a pattern may take in: a value with a single reader.
struct OperatorLink {
  int value = -1;
  int reader = -1;

  bool exists() const { return reader >= 0; }
};

// Returns the first of an operator's outputs with a single reader, if that is of this kind.
OperatorLink find_link(const OperatorGraph& graph, int op, const std::string& kind);

// Returns a reader of `value` that is of this kind, or -1.
int reader_of_kind(const OperatorGraph& graph, int value, const std::string& kind);

}  // namespace syncline::plan
